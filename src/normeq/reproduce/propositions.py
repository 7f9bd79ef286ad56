"""What the paper says in its text: any network can be wrapped, ours are linear in pieces, how many.

Networks with random weights, in float64: these properties hold by construction or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from normeq._support.photograph import sample_photograph
from normeq.equivariance import equivariance_error
from normeq.explanation import explain
from normeq.models import create
from normeq.nn import AffineLinear, SortPool, normalized
from normeq.reproduce.scale import Scale
from normeq.reproduce.verdicts import Claim, Verdict
from normeq.reproduce.workspace import Workspace

SEEDS = (0, 1, 2)
_ROUNDING = 1e-9
# A function that is smooth and not linear bends at every point, by far more than rounding.
_STRAIGHT, _BENT, _JUMP = 1e-9, 0.3, 10.0
_SIDE = 24
#: Inputs at which pieces are counted, and points on a line between two images.
_INPUTS = {Scale.TINY: 2_000, Scale.SMALL: 100_000, Scale.PAPER: 1_000_000}
_POINTS = {Scale.TINY: 1001, Scale.SMALL: 2001, Scale.PAPER: 10_001}
#: A dense network of 2 layers of 4 neurons: two pairs each are sorted.
_WIDTH, _LAYERS = 4, 2
_SORTED_PAIRS = _LAYERS * _WIDTH // 2


def reproduce(workspace: Workspace) -> None:
    """Check the propositions on networks with random weights, with three seeds."""
    rows = [_row(seed, workspace.scale) for seed in SEEDS]
    workspace.table("propositions", rows)
    workspace.judge("propositions", _claims(rows))


def _row(seed: int, scale: Scale) -> dict[str, Any]:
    torch.manual_seed(seed)
    image = sample_photograph(_SIDE)
    ordinary = create("fdncnn", "ordinary", width=8, depth=4).double()
    norm = create("fdncnn", "norm-equiv", width=8, depth=4).double()
    with torch.no_grad():
        for name, parameter in ordinary.named_parameters():
            if name.endswith("bias"):
                parameter.normal_()
    batch = torch.from_numpy(image)[None, None]
    wrapped = equivariance_error(normalized(ordinary, "min-max", 0.1, 0.7), batch)
    centre = (_SIDE // 2, _SIDE // 2)
    row = explain(norm, image, centre)
    kinks, bent, jump = _along_a_line(norm, image, centre, seed, _POINTS[scale])
    rng = np.random.default_rng(seed)
    inputs = torch.from_numpy(rng.standard_normal((_INPUTS[scale], _WIDTH)))
    return {
        "seed": seed,
        "wrapped ordinary: error": f"{wrapped.norm:.1e}",
        "norm-equiv: |f(y) - Ay|": f"{abs(row.constant):.1e}",
        "norm-equiv: |A1 - 1|": f"{abs(row.sum - 1):.1e}",
        "kinks on a line": kinks,
        "share of bent points": f"{bent:.4f}",
        "largest step": f"{jump:.1f}",
        "pieces, sort pooling": _pieces(_dense(AffineLinear, SortPool), inputs),
        "bound, sort pooling": 2**_SORTED_PAIRS,
        "pieces, ReLU": _pieces(_dense(_without_bias, nn.ReLU), inputs),
        "bound, ReLU": 2 ** (2 * _SORTED_PAIRS),
    }


def _along_a_line(
    net: nn.Module, image: NDArray[np.float64], at: tuple[int, int], seed: int, points: int
) -> tuple[int, float, float]:
    """Follow a pixel of the output while the image changes in a straight line.

    Returns how often its slope changes, at which share of the points it is not straight, and how
    far it is from continuous: the largest step between neighbours over the mean one.
    """
    direction = np.random.default_rng(seed).standard_normal(image.shape)
    line = torch.linspace(0, 1, points, dtype=torch.float64)[:, None, None, None]
    start, way = (torch.from_numpy(each)[None, None] for each in (image, 0.2 * direction))
    with torch.inference_mode():
        values = net(start + line * way)[:, 0, at[0], at[1]].numpy()
    steps = np.diff(values)
    bent = np.abs(np.diff(steps)) > _STRAIGHT * np.abs(steps).max()
    # A kink that falls between two points shows at both.
    kinks = int(np.sum(bent & ~np.append(False, bent[:-1])))
    return kinks, float(bent.mean()), float(np.abs(steps).max() / np.abs(steps).mean())


def _without_bias(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False)


def _dense(
    linear: Callable[[int, int], nn.Module], activation: Callable[[], nn.Module]
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(_LAYERS):
        layers += [linear(_WIDTH, _WIDTH), activation()]
    return nn.Sequential(*layers, linear(_WIDTH, 1)).double()


def _pieces(net: nn.Module, inputs: Tensor) -> int:
    """Count the different rows of the Jacobian among many inputs."""
    x = inputs.clone().requires_grad_()
    (rows,) = torch.autograd.grad(net(x).sum(), x)
    return len(np.unique(rows.numpy().round(9), axis=0))


def _claims(rows: list[dict[str, Any]]) -> list[Claim]:
    def worst(column: str) -> float:
        return max(float(row[column]) for row in rows)

    def verdict(holds: bool) -> Verdict:
        return Verdict.HOLDS if holds else Verdict.FAILS

    linear = max(worst("norm-equiv: |f(y) - Ay|"), worst("norm-equiv: |A1 - 1|"))
    bent, step = worst("share of bent points"), worst("largest step")
    sorted_pieces, relu_pieces = worst("pieces, sort pooling"), worst("pieces, ReLU")
    bound = 2**_SORTED_PAIRS
    return [
        Claim(
            "T(a,b)⁻¹ ∘ f ∘ T(a,b) is normalization-equivariant for any f (proposition 1)",
            "proof",
            f"error {worst('wrapped ordinary: error'):.0e} around networks with biases",
            verdict(worst("wrapped ordinary: error") < _ROUNDING),
        ),
        Claim(
            "Norm-equiv networks are f(y) = Ay with rows of A that sum to one (proposition 3)",
            "proof",
            f"off by {linear:.0e}",
            verdict(linear < _ROUNDING),
        ),
        Claim(
            "They are continuous and piecewise linear with finitely many pieces (proposition 3)",
            "proof",
            f"straight at {1 - bent:.1%} of the points of a line; steps up to {step:.1f} times the "
            "mean one",
            verdict(bent < _BENT and step < _JUMP),
        ),
        Claim(
            "S sort poolings give at most 2^S filters, where ReLU would allow 2^(2S)",
            "counted",
            f"S = {_SORTED_PAIRS}: {sorted_pieces:.0f} of at most {bound} with sort pooling, "
            f"{relu_pieces:.0f} of at most {bound**2} with ReLU",
            verdict(sorted_pieces <= bound and relu_pieces <= bound**2),
            "different rows of the Jacobian among random inputs of a small dense network",
        ),
    ]
