"""Equivariant twins of any network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

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
from normeq.conversion.refusals import (
    refuse_misfit,
    refuse_other_outputs,
    refuse_scripts,
    refuse_unproven,
    refuse_without_maps,
)
from normeq.conversion.residual_form import OnDifferences
from normeq.conversion.scale_form import make_homogeneous
from normeq.errors import UsageError
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
    refuse_scripts(module)
    args = _filled(arguments(module, example))
    reference = private_copy(module).eval()
    refuse_unfit(reference, args)
    refuse_other_outputs(reference, args, to)
    editor = NetworkEditor(module, args)
    _FORMS[to](editor, reference, args)
    twin = editor.root
    certificate = certify(private_copy(twin).eval(), args)
    refuse_unproven(module, args, to, certificate)
    trained, in_training = norms_in_training(module), None
    if trained and trouble(twin, args) is None:  # a batch norm trains on no single value
        in_training = certify(twin, args)
        refuse_unproven(module, args, to, in_training)
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
    refuse_misfit(module, args, "norm-equiv-residual")
    editor.wrap(OnDifferences(editor.root))


def _make_wrapped_form(editor: NetworkEditor, module: nn.Module, args: list[Any]) -> None:
    editor.wrap(Normalized(editor.root, "mean-std"))


def _make_local_form(editor: NetworkEditor, module: nn.Module, args: list[Any]) -> None:
    refuse_misfit(module, args, "norm-equiv-local")
    editor.wrap(LocallyNormalized(editor.root))
    refuse_without_maps(module, editor.root, args)


_FORMS: dict[Target, Callable[[NetworkEditor, nn.Module, list[Any]], None]] = {
    "scale-equiv": _make_scale_form,
    "norm-equiv": _make_affine_form,
    "norm-equiv-residual": _make_residual_form,
    "norm-equiv-wrapped": _make_wrapped_form,
    "norm-equiv-local": _make_local_form,
}


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


@torch.no_grad()
def _distance(module: nn.Module, twin: nn.Module, args: list[object]) -> float:
    """Measure how far the twin's output is from the original's, in spreads of that."""
    before, after = (private_copy(net).eval()(*fresh(args)) for net in (module, twin))
    if not isinstance(before, Tensor) or before.shape != after.shape:
        return float("nan")
    spread = before.double().std()
    return float((after.double() - before.double()).square().mean().sqrt() / spread)
