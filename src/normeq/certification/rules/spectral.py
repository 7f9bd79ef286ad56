"""Laws of Fourier transforms and complex numbers, whose coefficients are complex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from normeq.certification.operation import Operation, law
from normeq.certification.rules.demands import alike
from normeq.certification.shadow import Shadow


@law("_fft_r2c", "_fft_c2c", "_fft_c2r")
def fourier(op: Operation, x: Shadow, dims: Sequence[int], *options: Any) -> Shadow:
    """Transform coefficients and values; degrees must be alike along the axes."""
    common = alike(op, _real_parts(x), dims, "transforms")
    shape = list(op.shapes[0])
    d, slack = (
        plane.expand(*(1 if n == 1 else m for n, m in zip(plane.shape, shape, strict=True)))
        for plane in (common.d, common.slack)
    )
    rounding = slack + op.eps * float(x.c.abs().max()) if x.c.numel() else slack
    return Shadow(
        d.expand(shape),
        op.run(x.c, list(dims), *options),
        op.run(x.v, list(dims), *options),
        rounding.expand(shape).contiguous(),
    )


def _real_parts(x: Shadow) -> Shadow:
    """Return the law without offset, which is real."""
    zero = torch.zeros_like(x.d)
    return Shadow(x.d, zero, zero, x.slack)


@law("view_as_real")
def as_real(op: Operation, x: Shadow) -> Shadow:
    """Real and imaginary parts side by side."""
    return _split(op, x)


@law("view_as_complex")
def as_complex(op: Operation, x: Shadow) -> Shadow:
    """Join real and imaginary parts, of which both must share one degree."""
    common = alike(op, _real_parts(x), [-1], "joins")
    return Shadow(
        common.d.squeeze(-1),
        torch.view_as_complex(x.c.contiguous()),
        torch.view_as_complex(x.v.contiguous()),
        common.slack.squeeze(-1),
    )


def _split(op: Operation, x: Shadow) -> Shadow:
    shape = tuple(op.shapes[0])
    return Shadow(
        x.d[..., None].expand(shape),
        torch.view_as_real(x.c.contiguous()),
        torch.view_as_real(x.v.contiguous()),
        x.slack[..., None].expand(shape),
    )


@law("real", "imag", "conj", "_conj", "conj_physical", "resolve_conj")
def part(op: Operation, x: Shadow) -> Shadow:
    """Take a part of complex numbers, or mirror them."""
    if not x.c.is_complex():
        return x
    name = op.name.lstrip("_").removesuffix("_physical")
    take = {"real": torch.real, "imag": torch.imag}.get(name, torch.conj_physical)
    return replace(x, c=take(x.c).clone(), v=take(x.v).clone())


@law("complex", many=True)
def make_complex(op: Operation, real: Any, imaginary: Any) -> Shadow:
    """Make complex numbers of parts of one degree."""
    from normeq.certification.rules.demands import merge
    from normeq.certification.rules.products import as_pair

    first, second = as_pair(real, imaginary)
    joined = merge(op, (_real_parts(first), _real_parts(second)), "joins")
    return replace(joined, c=torch.complex(first.c, second.c), v=torch.complex(first.v, second.v))
