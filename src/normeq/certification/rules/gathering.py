"""Laws of sampling, scattering and linear systems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from normeq.certification.operation import Operation, law, shadows_in
from normeq.certification.rules.demands import alike, ignore_gain, ignore_offset
from normeq.certification.rules.elementwise import RATIOS
from normeq.certification.rules.linear import averaging
from normeq.certification.rules.products import WEIGHTED, as_shadow
from normeq.certification.shadow import ANY, Shadow

_ZEROS = 0  # padding mode of grid_sampler


@law("grid_sampler", "grid_sampler_2d", "grid_sampler_3d", many=True)
def sample(op: Operation, x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Shadow:
    """Interpolate at given places; where the image determines them, all of it must be alike."""
    if not isinstance(grid, Shadow):
        return averaging(op, x, lambda plane: op.run(plane, grid.double(), mode, padding, corners))
    ignore_gain(op, grid, "samples at", RATIOS)
    ignore_offset(op, grid, "samples at", RATIOS)
    x = as_shadow(x)
    if padding == _ZEROS:
        x = ignore_offset(op, x, "samples, with zeros outside,", "padding_mode='border'").still()
    common = alike(op, x, range(2, x.c.ndim), "interpolates")
    return op.refreshed(common.map(lambda plane: plane.expand(tuple(op.shapes[0]))))


@law("scatter", "scatter_add", "index_add", "index_put", "index_copy", "masked_scatter", many=True)
def scatter(op: Operation, into: Any, *args: Any, **kwargs: Any) -> Shadow:
    """Put or add values at fixed places."""
    sources = [arg for arg in args if isinstance(arg, Shadow | Tensor)]
    *where, source = sources
    if any(isinstance(place, Shadow) for place in shadows_in(where)):
        raise NotImplementedError(f"{op.name} at places that the image determines")
    target, added = as_shadow(into), as_shadow(source)

    def run(plane: Tensor, other: Tensor) -> Tensor:
        replaced = [other if arg is source else arg for arg in args]
        result: Tensor = op.run(plane.contiguous(), *replaced, **kwargs)
        return result

    adds = "add" in op.name or any(arg is True for arg in (*args, *kwargs.values()))
    slack = run(target.slack, added.slack.contiguous())
    c, v = run(target.c, added.c.contiguous()), run(target.v, added.v.contiguous())
    if not adds:
        return Shadow(run(target.d, added.d.contiguous()), c, v, slack)
    degrees = torch.cat((target.d.flatten(), added.d.flatten()))
    present = degrees[degrees != ANY].unique()
    if len(present) > 1:
        op.blame("scale", "it adds features that scale differently.", "features of one degree")
    degree = float(present[0]) if len(present) else ANY
    return Shadow(torch.full_like(slack, degree), c, v, slack + op.eps * c.abs())


@law("linalg_solve", "_linalg_solve_ex", "linalg_solve_ex", many=True)
def solve(op: Operation, matrix: Any, right: Any, *args: Any, **kwargs: Any) -> Any:
    """Solve a linear system: linear in the right-hand side, of opposite degree in the matrix."""
    known = not isinstance(matrix, Shadow)
    a, b = as_shadow(matrix), as_shadow(right)
    still = ignore_offset(op, a, "solves with", WEIGHTED).still()
    degree = alike(op, still, range(a.c.ndim), "solves with").d.reshape(-1)[0]
    degree = torch.zeros(()) if known or degree == ANY else degree
    columns = alike(op, b.still(), range(b.c.ndim), "solves for")

    def run(plane: Tensor) -> Tensor:
        solution: Tensor = torch.linalg.solve(a.v, plane)
        return solution

    if not known and b.moves.any():
        op.suspect("shift", "it solves for features that move with the offset.", WEIGHTED)
    d = (columns.d.reshape(()) - degree).expand(b.shape)
    out = Shadow(d, run(b.c) if b.c.any() else b.c, run(b.v), b.slack + op.eps)
    return _with_rest(op, out)


@law("linalg_inv_ex", "linalg_inv", "inverse")
def invert(op: Operation, matrix: Shadow, *_: Any, **__: Any) -> Any:
    """Invert a matrix, which turns its degree around."""
    still = ignore_offset(op, matrix, "inverts", WEIGHTED).still()
    common = alike(op, still, range(-2, 0), "inverts")
    d = torch.where(common.d == ANY, ANY, -common.d).expand(matrix.shape)
    return _with_rest(op, replace(still, d=d, v=torch.linalg.inv(matrix.v)))


def _with_rest(op: Operation, first: Shadow) -> Any:
    rest = [op.output(0.0, 0.0, index) for index in range(1, len(op.shapes))]
    return [first, *rest] if rest else first
