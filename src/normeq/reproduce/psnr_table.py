"""The paper's table of PSNR on Set12 and BSD68, and how fast each form learns."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from normeq.reproduce.denoisers import (
    ARCHITECTURES,
    OUR_FORMS,
    PAPER_FORMS,
    REPEATED,
    TELESCOPED,
    TITLES,
    PaperDenoiser,
    rise,
    with_seeds,
)
from normeq.reproduce.measuring import psnr_by_sigma
from normeq.reproduce.plots import draw_lines
from normeq.reproduce.scale import Scale
from normeq.reproduce.trainable import usable
from normeq.reproduce.verdicts import Claim, are_equal, is_above, is_below, spread_of
from normeq.reproduce.workspace import Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETS = {"set12": "Set12", "bsd68": "BSD68"}
SIGMAS = (15, 25, 50)
FORMS = (*PAPER_FORMS, *OUR_FORMS, TELESCOPED)
#: The paper's figures: PSNR at sigma 15, 25 and 50.
PAPER: dict[tuple[str, str, str], tuple[float, float, float]] = {
    ("drunet", "ordinary", "set12"): (33.23, 30.92, 27.87),
    ("drunet", "scale-equiv", "set12"): (33.25, 30.94, 27.90),
    ("drunet", "norm-equiv", "set12"): (33.20, 30.90, 27.85),
    ("drunet", "ordinary", "bsd68"): (31.89, 29.44, 26.54),
    ("drunet", "scale-equiv", "bsd68"): (31.91, 29.48, 26.59),
    ("drunet", "norm-equiv", "bsd68"): (31.88, 29.45, 26.55),
    ("fdncnn", "ordinary", "set12"): (32.87, 30.49, 27.28),
    ("fdncnn", "scale-equiv", "set12"): (32.85, 30.49, 27.29),
    ("fdncnn", "norm-equiv", "set12"): (32.85, 30.50, 27.27),
    ("fdncnn", "ordinary", "bsd68"): (31.69, 29.22, 26.27),
    ("fdncnn", "scale-equiv", "bsd68"): (31.67, 29.20, 26.25),
    ("fdncnn", "norm-equiv", "bsd68"): (31.69, 29.22, 26.25),
}
_LARGEST_GAP = 0.05

#: PSNR by form, seed, set and sigma.
Measured = dict[tuple[str, int, str], dict[float, float]]


def networks(scale: Scale) -> list[PaperDenoiser]:
    """List the non-blind networks: the paper's variants and our forms."""
    return with_seeds(
        [PaperDenoiser(a, form, blind=False) for a in ARCHITECTURES for form in FORMS]
    )


def reproduce(workspace: Workspace) -> None:
    """Measure every form of DRUNet and FDnCNN, and draw PSNR against training steps."""
    sets = workspace.available(list(SETS), "psnr-table")
    rows, claims = [], []
    curves: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for architecture in ARCHITECTURES:
        every = [n for n in networks(workspace.scale) if n.architecture == architecture]
        listed = usable(every, workspace)
        results: Measured = {
            (each.form, each.seed, name): psnr_by_sigma(each, workspace, images, SIGMAS)
            for each in listed
            for name, images in sets.items()
        }
        rows += _rows(architecture, results, list(sets))
        own = {each.form: each.curve(workspace) for each in listed if each.seed == 0}
        curves[architecture] = own
        claims += _claims(architecture, results, max(map(rise, own.values())))
    workspace.table("psnr-table", rows)
    if any(curve for each in curves.values() for curve in each.values()):
        workspace.table("psnr-table-steps", _steps(curves), show=False)
        workspace.figure("psnr-table", lambda: _draw(curves))
    workspace.judge("psnr-table", claims)


def _rows(architecture: str, results: Measured, sets: list[str]) -> list[dict[str, str]]:
    rows = []
    for name in sets:
        for form in (form for form in FORMS if (form, 0, name) in results):
            published = PAPER.get((architecture, form, name))
            row = {"network": TITLES[architecture], "form": form, "set": SETS[name]}
            for index, sigma in enumerate(SIGMAS):
                row[f"sigma {sigma}"] = f"{_mean(results, form, name, sigma):.2f}"
                row[f"paper {sigma}"] = "" if published is None else f"{published[index]:.2f}"
            values = [_over_seeds(results, form, name, sigma) for sigma in SIGMAS]
            spread = max(map(spread_of, values))
            row["spread"] = f"{spread:.3f}" if len(values[0]) > 1 else ""
            rows.append(row)
    return rows


def _over_seeds(results: Measured, form: str, name: str, sigma: float) -> list[float]:
    return [psnr[sigma] for (f, _, n), psnr in results.items() if (f, n) == (form, name)]


def _mean(results: Measured, form: str, name: str, sigma: float) -> float:
    return fmean(_over_seeds(results, form, name, sigma))


def _claims(architecture: str, results: Measured, rising: float) -> list[Claim]:
    cases = [(name, sigma) for name in {n for _, _, n in results} for sigma in SIGMAS]
    spread = max(spread_of(_over_seeds(results, REPEATED, *case)) for case in cases)

    def gap(forms: tuple[str, ...]) -> float:
        """Return the largest distance between two forms in any column."""
        columns = [[_mean(results, form, *case) for form in forms] for case in cases]
        return max(max(column) - min(column) for column in columns)

    def lead(better: str, worse: str) -> float:
        return fmean(_mean(results, better, *c) - _mean(results, worse, *c) for c in cases)

    title = TITLES[architecture]
    claims = [
        Claim(
            f"{title}: the three variants differ by less than 0.05 dB",
            "at most 0.05 dB",
            f"at most {gap(PAPER_FORMS):.2f} dB",
            are_equal(gap(PAPER_FORMS), _LARGEST_GAP, spread, rising),
            f"spread over seeds {spread:.3f} dB; the curves rose {rising:.2f} dB in the last fifth",
        ),
    ]
    measured = {form for form, _, _ in results}
    if TELESCOPED in measured:
        behind = lead("scale-equiv", TELESCOPED)
        claims.append(
            Claim(
                f"{title}: norm-equiv with telescoped kernels needs a longer training",
                "1.8 to 2.25 times the steps",
                f"{behind:+.2f} dB behind scale-equiv after the same steps",
                is_above(behind, 0.0, spread),
            )
        )
    if "norm-equiv-residual" in measured:
        ours = lead("scale-equiv", "norm-equiv-residual")
        claims.append(
            Claim(
                f"{title}: our residual form needs no longer training (not in the paper)",
                "",
                f"{ours:+.2f} dB behind scale-equiv after the same steps",
                is_below(ours, _LARGEST_GAP, spread),
            )
        )
    return claims


def _steps(curves: dict[str, dict[str, list[tuple[int, float]]]]) -> list[dict[str, str | int]]:
    return [
        {"network": TITLES[architecture], "form": form, "step": step, "psnr": f"{psnr:.3f}"}
        for architecture, forms in curves.items()
        for form, curve in forms.items()
        for step, psnr in curve
    ]


def _draw(curves: dict[str, dict[str, list[tuple[int, float]]]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4 * len(curves), 4.4), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for axes, (architecture, forms) in zip(panels, curves.items(), strict=True):
        draw_lines(axes, forms, "training steps", "PSNR on the validation set (dB)")
        axes.set_title(TITLES[architecture])
    return figure
