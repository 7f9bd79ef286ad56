"""Networks trained at one noise level, measured at all others: the paper's figure of robustness."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from normeq.reproduce.denoisers import (
    ARCHITECTURES,
    OUR_FORMS,
    PAPER_FORMS,
    REPEATED,
    SEEDS,
    TITLES,
    TRAINED_AT,
    PaperDenoiser,
    largest_rise,
    with_seeds,
)
from normeq.reproduce.measuring import noisy_psnr, psnr_by_sigma
from normeq.reproduce.plots import draw_lines
from normeq.reproduce.scale import Scale
from normeq.reproduce.trainable import usable
from normeq.reproduce.verdicts import Claim, are_equal, is_above, spread_of
from normeq.reproduce.workspace import Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMS = (*PAPER_FORMS, *OUR_FORMS)
SIGMAS: dict[Scale, tuple[float, ...]] = {
    Scale.TINY: (5, 25, 50),
    Scale.SMALL: (1, 2.5, 5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100),
    Scale.PAPER: (1, 2.5, 5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100),
}
#: "Identical" and "much more robust", in decibels, as they are judged here.
_SAME, _MUCH = 0.1, 1.0

#: PSNR by form, seed and sigma.
Measured = dict[tuple[str, int], dict[float, float]]


def networks(
    scale: Scale, architectures: Sequence[str] = ARCHITECTURES, noise: str = "gaussian"
) -> list[PaperDenoiser]:
    """List the blind networks, trained at one level of one kind of noise."""
    forms = FORMS if noise == "gaussian" else PAPER_FORMS
    return with_seeds(
        [PaperDenoiser(a, form, True, noise) for a in architectures for form in forms]
    )


def reproduce(workspace: Workspace) -> None:
    """Measure DRUNet and FDnCNN on Set12 at sigma from 1 to 100."""
    images = workspace.images("set12", "noise-generalization")
    sigmas = SIGMAS[workspace.scale]
    noisy = noisy_psnr(images, sigmas)
    measured: dict[str, Measured] = {}
    rises: dict[str, float] = {}
    for architecture in ARCHITECTURES:
        listed = usable(networks(workspace.scale, [architecture]), workspace)
        measured[architecture] = {
            (each.form, each.seed): psnr_by_sigma(each, workspace, images, sigmas)
            for each in listed
        }
        rises[architecture] = largest_rise(listed, workspace)
    rows = [
        row
        for architecture, results in measured.items()
        for row in as_rows(TITLES[architecture], results, noisy)
    ]
    workspace.table("noise-generalization", rows)
    workspace.figure("noise-generalization", lambda: draw(measured, dict.fromkeys(measured, noisy)))
    workspace.judge(
        "noise-generalization",
        [
            claim
            for architecture, results in measured.items()
            for claim in claims(TITLES[architecture], results, rises[architecture])
        ],
    )


def as_rows(
    title: str, results: Measured, noisy: dict[float, float]
) -> list[dict[str, str | float]]:
    """Lay measurements out, a row for each noise level, with the spread over seeds."""
    forms = list(dict.fromkeys(form for form, _ in results))
    return [
        {
            "network": title,
            "sigma": sigma,
            "noisy": f"{noisy[sigma]:.2f}",
            **{form: f"{mean_over_seeds(results, form)[sigma]:.2f}" for form in forms},
            "spread": f"{spread(results, sigma):.3f}",
        }
        for sigma in noisy
    ]


def mean_over_seeds(results: Measured, form: str) -> dict[float, float]:
    """Return the PSNR of a form at each noise level."""
    runs = [by_sigma for (other, _), by_sigma in results.items() if other == form]
    return {sigma: fmean(run[sigma] for run in runs) for sigma in runs[0]}


def spread(results: Measured, sigma: float) -> float:
    """Return the standard deviation over seeds at one noise level."""
    return spread_of([by_sigma[sigma] for (f, _), by_sigma in results.items() if f == REPEATED])


def claims(title: str, results: Measured, rising: float) -> list[Claim]:
    """Judge what the paper says of robustness, for one architecture."""
    psnr = {form: mean_over_seeds(results, form) for form in PAPER_FORMS}
    above = [sigma for sigma in psnr["ordinary"] if sigma > TRAINED_AT]
    below = [sigma for sigma in psnr["ordinary"] if sigma < TRAINED_AT / 2]

    def gain(better: str, worse: str, sigmas: list[float]) -> float:
        return fmean(psnr[better][sigma] - psnr[worse][sigma] for sigma in sigmas)

    def spread_over(sigmas: list[float]) -> float:
        repeated = [results[REPEATED, seed] for seed in SEEDS if (REPEATED, seed) in results]
        return spread_of([fmean(run[sigma] for sigma in sigmas) for run in repeated])

    lower = gain("norm-equiv", "scale-equiv", below)
    higher = gain("norm-equiv", "scale-equiv", above)
    over_ordinary = gain("norm-equiv", "ordinary", [*below, *above])
    trained = gain("norm-equiv", "scale-equiv", [TRAINED_AT])
    ahead = f"at {TRAINED_AT} itself norm-equiv is {trained:+.2f} dB from scale-equiv"
    seen = f"sigma {below[0]:g} to {below[-1]:g}"
    beyond = f"sigma {above[0]:g} to {above[-1]:g}"
    at = f"{title}, trained at {TRAINED_AT}:"
    return [
        Claim(
            f"{at} below that level norm-equiv is much more robust than scale-equiv",
            "figure: far better",
            f"{lower:+.2f} dB on average, {seen}",
            is_above(lower, _MUCH, spread_over(below), rising),
            f"much: more than {_MUCH:g} dB; {ahead}",
        ),
        Claim(
            f"{at} above it the two are identical",
            "figure: equal",
            f"{higher:+.2f} dB on average, {beyond}",
            are_equal(abs(higher), _SAME, spread_over(above), rising),
            f"identical: within {_SAME:g} dB; {ahead}; the curves rose {rising:.2f} dB in the last "
            "fifth",
        ),
        Claim(
            f"{at} networks with biases overfit to the level",
            "figure: far worse",
            f"norm-equiv {over_ordinary:+.2f} dB on average at the other levels",
            is_above(over_ordinary, _MUCH, spread_over([*below, *above]), rising),
        ),
    ]


def draw(measured: dict[str, Measured], noisy: dict[str, dict[float, float]]) -> Figure:
    """Draw PSNR against sigma, a panel for each architecture or kind of noise."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4 * len(measured), 4.4), layout="constrained")
    panels = figure.subplots(1, len(measured), squeeze=False, sharey=True)[0]
    for axes, (name, results) in zip(panels, measured.items(), strict=True):
        lines = {"noisy": list(noisy[name].items())}
        for form in dict.fromkeys(form for form, _ in results):
            lines[form] = list(mean_over_seeds(results, form).items())
        draw_lines(axes, lines, "σ of the noise (white is 255)")
        axes.set(xscale="log", title=TITLES.get(name, name))
        axes.axvline(TRAINED_AT, color="0.5", ls=":", lw=1)
    return figure
