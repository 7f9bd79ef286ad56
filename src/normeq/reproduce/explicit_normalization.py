"""The paper's Monarch figure: noise of another level, by a normalisation that is done by hand.

A network trained at sigma denoises ``y = x + λ·ε`` as ``λ·f((y - μ)/λ) + μ``. An ordinary network
needs both numbers, a scale-equivariant one the shift alone, a norm-equivariant one neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normeq.images.folder import to_unit
from normeq.metrics import psnr
from normeq.reproduce.denoisers import (
    PAPER_FORMS,
    REPEATED,
    TRAINED_AT,
    PaperDenoiser,
    largest_rise,
    with_seeds,
)
from normeq.reproduce.measuring import image_function
from normeq.reproduce.plots import draw_lines
from normeq.reproduce.scale import Scale
from normeq.reproduce.trainable import usable
from normeq.reproduce.verdicts import Claim, Verdict, is_above, spread_of, together
from normeq.reproduce.workspace import Unavailable, Workspace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Function = Callable[[Floats, float | None], Floats]

MONARCH = "05.png"
#: The noise level over that of training.
LAMBDAS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0)
#: The shift in gray levels out of 1, at a noise level well below that of training.
SHIFTS = tuple(round(-0.2 + 0.1 * step, 1) for step in range(11))
LOW = 0.2
_PATCH = 16


def networks(scale: Scale) -> list[PaperDenoiser]:
    """List the blind DRUNets, trained at one noise level."""
    return with_seeds([PaperDenoiser("drunet", form, blind=True) for form in PAPER_FORMS])


def reproduce(workspace: Workspace) -> None:
    """Measure Monarch at other noise levels, with the scale and the shift applied by hand."""
    clean = image_of_set12(workspace, MONARCH, "explicit-normalization")
    unit = np.random.default_rng(0).standard_normal(clean.shape) * TRAINED_AT / 255
    listed = usable(networks(workspace.scale), workspace)
    nets = {each.name: image_function(each.network(workspace)) for each in listed}
    by_lambda, by_shift = [], []
    for each in listed:
        net = nets[each.name]
        for gain in LAMBDAS:
            noisy = clean + gain * unit
            by_lambda.append(
                {
                    "form": each.form,
                    "seed": each.seed,
                    "lambda": gain,
                    "as it is": f"{psnr(net(noisy, None), clean):.3f}",
                    "scaled": f"{psnr(_by_hand(net, noisy, gain, 0.0), clean):.3f}",
                    "scaled and shifted": f"{_best(net, noisy, gain, clean):.3f}",
                }
            )
        noisy = clean + LOW * unit
        for shift in SHIFTS:
            value = psnr(_by_hand(net, noisy, LOW, shift), clean)
            by_shift.append(
                {"form": each.form, "seed": each.seed, "shift": shift, "psnr": f"{value:.3f}"}
            )
    workspace.table("explicit-normalization", by_lambda)
    workspace.table("explicit-normalization-shift", by_shift, show=False)
    patches = _patches(clean)
    workspace.table("explicit-normalization-patches", patches)
    workspace.figure("explicit-normalization", lambda: _draw(by_lambda, by_shift, patches))
    rising = largest_rise(listed, workspace)
    workspace.judge("explicit-normalization", _claims(by_lambda, patches, rising))


def image_of_set12(workspace: Workspace, name: str, purpose: str) -> Floats:
    """Return one image of Set12, with white at 1."""
    folder = workspace.images("set12", purpose)
    if name not in folder.names:
        raise Unavailable(f"{purpose} needs {name} of Set12, which is not in '{workspace.data}'.")
    image: Floats = to_unit(folder.images[folder.names.index(name)])[0].astype(np.float64)
    return image


def _by_hand(net: Function, noisy: Floats, gain: float, shift: float) -> Floats:
    return gain * net((noisy - shift) / gain, None) + shift


def _best(net: Function, noisy: Floats, gain: float, clean: Floats) -> float:
    return max(psnr(_by_hand(net, noisy, gain, shift), clean) for shift in SHIFTS)


def _patches(clean: Floats) -> list[dict[str, Any]]:
    """Count the patches that stay in the range of training when they are stretched."""
    height, width = (length // _PATCH * _PATCH for length in clean.shape)
    patches = clean[:height, :width].reshape(height // _PATCH, _PATCH, width // _PATCH, _PATCH)
    low, high = patches.min((1, 3)), patches.max((1, 3))
    return [
        {
            "lambda": gain,
            "x/λ in [0, 1]": f"{np.mean(high / gain <= 1):.3f}",
            "(x - μ)/λ in [0, 1] for some μ": f"{np.mean((high - low) / gain <= 1):.3f}",
        }
        for gain in LAMBDAS
    ]


def _value(rows: list[dict[str, Any]], form: str, seed: int, gain: float, column: str) -> float:
    (found,) = (
        float(row[column])
        for row in rows
        if (row["form"], row["seed"], row["lambda"]) == (form, seed, gain)
    )
    return found


def _claims(
    rows: list[dict[str, Any]], patches: list[dict[str, Any]], rising: float
) -> list[Claim]:
    seeds = sorted({row["seed"] for row in rows if row["form"] == REPEATED})
    spread = spread_of([_value(rows, REPEATED, seed, LOW, "as it is") for seed in seeds])

    def gained(form: str, to: str, start: str) -> float:
        return _value(rows, form, 0, LOW, to) - _value(rows, form, 0, LOW, start)

    ordinary = gained("ordinary", "scaled and shifted", "as it is")
    scale = gained("scale-equiv", "scaled and shifted", "as it is")
    unchanged = abs(gained(REPEATED, "scaled", "as it is"))
    stretched = next(row for row in patches if row["lambda"] == LOW)
    without, with_shift = (float(stretched[column]) for column in list(stretched)[1:])
    return [
        Claim(
            f"With scale and shift by hand, networks work at λ = {LOW:g} of the training level",
            "figure: they do",
            f"ordinary {ordinary:+.2f} dB, scale-equiv {scale:+.2f} dB by the best shift",
            together([is_above(each, 0.0, spread, rising) for each in (ordinary, scale)]),
            f"the best of {len(SHIFTS)} shifts by the truth, so that a gain is never negative; "
            f"norm-equiv gains {unchanged:.3f} dB by scaling: it does so by itself",
        ),
        Claim(
            "Patches x/λ leave the training range where (x - μ)/λ does not",
            "figure: examples",
            f"λ = {LOW:g}: {without:.0%} of the patches stay without a shift, {with_shift:.0%} "
            "with one",
            Verdict.HOLDS if without < with_shift else Verdict.FAILS,
            f"counted on {_PATCH}x{_PATCH} patches of Monarch; needs no network",
        ),
    ]


def _draw(
    by_lambda: list[dict[str, Any]],
    by_shift: list[dict[str, Any]],
    patches: list[dict[str, Any]],
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    first = [row for row in by_lambda if row["seed"] == 0]
    for column, style in (("as it is", ".-"), ("scaled and shifted", ".:")):
        lines = {
            f"{form}, {column}": [
                (row["lambda"], float(row[column])) for row in first if row["form"] == form
            ]
            for form in PAPER_FORMS
        }
        draw_lines(left, lines, "λ: noise level over that of training", style=style)
    left.set_xscale("log")
    shifts = {
        form: [
            (row["shift"], float(row["psnr"]))
            for row in by_shift
            if row["form"] == form and row["seed"] == 0
        ]
        for form in PAPER_FORMS
    }
    draw_lines(middle, shifts, f"shift μ, at λ = {LOW:g} with the scale by hand")
    kept = {
        column: [(row["lambda"], float(row[column])) for row in patches]
        for column in list(patches[0])[1:]
    }
    draw_lines(right, kept, "λ", "share of the patches of Monarch")
    return figure
