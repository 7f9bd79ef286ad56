"""Equivariant twins of any network."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from normeq.certification import Certificate, Culprit, Status
from normeq.certification.examples import (
    Example,
    arguments,
    refuse_unfit,
    refuse_unready,
    trouble,
)
from normeq.certification.prover import certify, send
from normeq.conversion.affine_form import make_affine
from normeq.conversion.batch_norm import measure_usual_sizes
from normeq.conversion.changes import ConversionReport
from normeq.conversion.enclosing import enclose_culprits
from normeq.conversion.network_editor import NetworkEditor
from normeq.conversion.operations import norms_in_training
from normeq.conversion.residual_form import OnDifferences, refuse_misfit
from normeq.conversion.scale_form import make_homogeneous
from normeq.errors import UsageError, reason
from normeq.models.building_blocks import Variant
from normeq.models.network import equivariance_of
from normeq.nn import LocallyNormalized, Normalized
from normeq.nn.copies import fresh, private_copy

Target = Literal[
    "scale-equiv", "norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped", "norm-equiv-local"
]
TARGETS: tuple[Target, ...] = get_args(Target)


def convert(
    module: nn.Module, to: Target, example: Example | None = None
) -> tuple[nn.Module, ConversionReport]:
    """Return a twin of a network that has a property by construction, proven, and what changed.

    The twin is called as the network is, its layers keep their names as far as they can, and it
    can be trained, saved, folded and exported. The network itself is left as it is.

    Parameters
    ----------
    module
        Any network. A batch norm in eval mode is folded; one in training mode is kept, and learns
        from ratios.
    to
        ``"scale-equiv"``: ``f(λ·y) = λ·f(y)``; biases and shifts of batch norms are dropped, and
        norms, gates and smooth activations see ratios. The others:
        ``f(λ·y + μ, λ·σ) = λ·f(y, σ) + μ``.
        ``"norm-equiv"``: kernels that sum to one, sort pooling, affine residuals, copy padding;
        to be trained again. ``"norm-equiv-residual"``: the scale-equivariant twin on differences
        from the local mean, which is added at the end; close to the original.
        ``"norm-equiv-wrapped"``: the network as it is, on images normalised by their mean and
        standard deviation; it must be one of an image, or of an image and a noise level.
        ``"norm-equiv-local"``: the same with the mean and spread of windows around each pixel, so
        that it stays local.
    example
        An image batch, or the network's arguments, as for `normeq.certify`.

    Returns
    -------
    tuple
        The twin, in the original's mode, and a `ConversionReport`.

    Examples
    --------
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
    ...                     nn.Conv2d(8, 1, 3, padding=1))
    >>> twin, report = convert(net, "norm-equiv")
    >>> twin[0], twin[2]
    (ParametrizedAffineConv2d(...), SortPool(group=2))
    >>> report.certificate.norm
    <Status.PROVEN: 'proven'>
    """
    if to not in TARGETS:
        raise UsageError(f"{to!r} is not a variant to convert to: use one of {', '.join(TARGETS)}.")
    refuse_unready(module)
    _refuse_scripts(module)
    args = _filled(arguments(module, example))
    refuse_unfit(private_copy(module).eval(), args)
    editor = NetworkEditor(module, args)
    _FORMS[to](editor, module, args)
    twin = editor.root
    certificate = certify(private_copy(twin).eval(), args)
    _refuse(module, args, to, certificate)
    trained, in_training = norms_in_training(module), None
    if trained and trouble(twin, args) is None:  # a batch norm trains on no single value
        in_training = certify(twin, args)
        _refuse(module, args, to, in_training)
    sizes = tuple(sum(p.numel() for p in net.parameters()) for net in (module, twin))
    report = ConversionReport(
        to,
        tuple(editor.changes),
        (sizes[0], sizes[1]),
        _distance(module, twin, args),
        certificate,
        tuple(tuple(leaf.shape) for leaf in args if isinstance(leaf, Tensor)),
        tuple(trained),
        in_training,
    )
    return twin, report


def _make_scale_form(editor: NetworkEditor, module: nn.Module, args: list[Any]) -> None:
    make_homogeneous(editor)
    measure_usual_sizes(editor, args)
    enclose_culprits(editor, args, ("scale",), offset=False)
    _relabel(editor, "scale-equiv")


def _make_affine_form(editor: NetworkEditor, module: nn.Module, args: list[Any]) -> None:
    make_affine(editor, send(module, args))
    measure_usual_sizes(editor, args)
    enclose_culprits(editor, args, ("scale", "shift"), offset=True)
    _relabel(editor, "norm-equiv")


def _make_residual_form(editor: NetworkEditor, module: nn.Module, args: list[Any]) -> None:
    _make_scale_form(editor, module, args)
    refuse_misfit(private_copy(module).eval(), args)
    editor.wrap(OnDifferences(editor.root))


def _make_wrapped_form(editor: NetworkEditor, module: nn.Module, args: list[Any]) -> None:
    _refuse_other_outputs(module, args)
    editor.wrap(Normalized(editor.root, "mean-std"))


def _make_local_form(editor: NetworkEditor, module: nn.Module, args: list[Any]) -> None:
    refuse_misfit(private_copy(module).eval(), args)
    editor.wrap(LocallyNormalized(editor.root))
    _refuse_without_maps(module, editor.root, args)


_FORMS: dict[Target, Callable[[NetworkEditor, nn.Module, list[Any]], None]] = {
    "scale-equiv": _make_scale_form,
    "norm-equiv": _make_affine_form,
    "norm-equiv-residual": _make_residual_form,
    "norm-equiv-wrapped": _make_wrapped_form,
    "norm-equiv-local": _make_local_form,
}


def _refuse_scripts(module: nn.Module) -> None:
    """Refuse a network that contains compiled code instead of layers."""
    if any(isinstance(part, torch.jit.ScriptModule) for part in module.modules()):
        raise UsageError(
            f"{type(module).__name__} contains a ScriptModule, which has no layers to convert: "
            "convert the network that was scripted."
        )


def _refuse_other_outputs(module: nn.Module, args: list[Any]) -> None:
    """Refuse a network whose output cannot be brought back to the units of the image."""
    with torch.no_grad():
        out = private_copy(module).eval()(*fresh(args))
    if not isinstance(out, Tensor) or not out.is_floating_point():
        kind = f"{out.dtype} numbers" if isinstance(out, Tensor) else f"a {type(out).__name__}"
        raise UsageError(
            f"{type(module).__name__} returns {kind}: only one tensor of real numbers can be "
            "brought back to the units of the image."
        )


def _refuse_without_maps(module: nn.Module, wrapped: nn.Module, args: list[Any]) -> None:
    """Refuse a network that takes a noise level for a whole image only."""
    error = trouble(private_copy(wrapped).eval(), args)
    if error is not None:
        raise UsageError(
            f"{type(module).__name__} does not take a map of noise levels, which the form "
            f"norm-equiv-local needs ({reason(error)}): convert it to 'norm-equiv-wrapped'."
        ) from error


def _filled(args: list[object]) -> list[object]:
    """Fill an example of zeros with noise, on which a distance can be measured."""
    image = args[0]
    assert isinstance(image, Tensor)
    if not image.any():
        noise = torch.rand(image.shape, generator=torch.Generator().manual_seed(0))
        args = [noise.to(image), *args[1:]]
    return args


def _relabel(editor: NetworkEditor, variant: Variant) -> None:
    """Let a changed network of the registry say what it is now: nothing `create` can build."""
    net: Any = editor.root
    if editor.changes and hasattr(net, "config") and hasattr(net, "equivariance"):
        net.config = {}
        net.variant = variant
        net.equivariance = equivariance_of(variant)


def _refuse(module: nn.Module, args: list[object], to: Target, certificate: Certificate) -> None:
    """Refuse a network of which some operations have no counterpart, naming them."""
    status = certificate.scale if to == "scale-equiv" else certificate.norm
    if status is Status.PROVEN:
        return
    wanted = ("scale",) if to == "scale-equiv" else ("scale", "shift")
    left = [culprit for culprit in certificate.culprits if culprit.property in wanted]
    lines = _source_lines(module, args)
    names = dict.fromkeys(f"{c.operation} in {_place(c, lines)}" for c in left)
    listed = "; ".join(list(names)[:3]) + ("; ..." if len(names) > 3 else "")
    if to in ("norm-equiv-wrapped", "norm-equiv-local") or left[0].operation == "measurement":
        raise UsageError(
            f"{type(module).__name__} in the form {to} cannot be proven, because of {listed}: "
            f"{left[0].reason} Fix: {left[0].fix}."
        )
    raise UsageError(
        f"{type(module).__name__} cannot be made {to}, because there is no counterpart for: "
        f"{listed}. Convert it to 'norm-equiv-wrapped', which takes any network of an image, or of "
        f"an image and a noise level, or change these ({left[0].reason} Fix: {left[0].fix})."
    )


def _source_lines(module: nn.Module, args: list[object]) -> dict[tuple[str, str], str]:
    """Return where the network's source first calls each operation of each module.

    The forward pass of a twin may have been written anew, with lines that mean nothing to a user.
    """
    outcome = send(private_copy(module).eval(), args)
    records = [] if outcome is None else outcome.records
    return {(record.path, record.operation): record.line for record in reversed(records)}


def _place(culprit: Culprit, lines: dict[tuple[str, str], str]) -> str:
    """Say where a culprit is: its module, and the line of source that calls it."""
    path = re.sub(r"^(inner(\.|$))+", "", culprit.path)  # what is wrapped is called `inner`
    line = culprit.line or lines.get((path, culprit.operation), "")
    return f"{path or 'the network itself'} ({line})" if line else path or "the network itself"


@torch.no_grad()
def _distance(module: nn.Module, twin: nn.Module, args: list[object]) -> float:
    """Measure how far the twin's output is from the original's, in spreads of that."""
    before, after = (private_copy(net).eval()(*fresh(args)) for net in (module, twin))
    if not isinstance(before, Tensor) or before.shape != after.shape:
        return float("nan")
    spread = before.double().std()
    return float((after.double() - before.double()).square().mean().sqrt() / spread)
