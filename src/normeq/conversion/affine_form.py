"""The affine form: kernels that sum to one, sort pooling, affine residuals, copy padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from normeq.certification.propagation import Run
from normeq.conversion.attention_twins import equivariant_from
from normeq.conversion.batch_norm import LINEAR, fold_batch_norms, is_plain
from normeq.conversion.editor import (
    ADDITIONS,
    AVERAGE_POOLS,
    DROPOUTS,
    KINKED_CALLS,
    KINKED_LAYERS,
    PRODUCTS,
    SMOOTH_CALLS,
    SMOOTH_LAYERS,
    SUBTRACTIONS,
    TANHS,
    Editor,
    Part,
    name_of,
)
from normeq.conversion.scale_form import drop_bias
from normeq.nn import (
    AffineConv2d,
    AffineConvTranspose2d,
    AffineLinear,
    AffineResidual,
    SortPool,
    constrain,
    equivariant_attention,
)
from normeq.nn.padding import COPY_MODES, ReplicatePad

_ACTIVATION_LAYERS = (*SMOOTH_LAYERS, *KINKED_LAYERS, nn.Tanh)
_ACTIVATION_CALLS = (*SMOOTH_CALLS, *KINKED_CALLS, *TANHS)


def make_affine(editor: Editor, outcome: Run | None) -> None:
    """Convert so that every feature follows gain and offset, as the paper does.

    Kernels are projected onto those that sum to one, except on channels that the certificate's
    `outcome` shows not to move with the offset (noise maps); activations become sort pooling,
    additions affine residuals, batch norm is folded and what is left of it dropped.
    """
    fold_batch_norms(editor)
    still = {} if outcome is None else _still_channels(outcome)
    for path, layer in editor.layers():
        _convert_layer(editor, path, layer, still.get(path))
    for part in editor.parts():
        for node in part.nodes:
            _convert_call(part, node)


def _still_channels(outcome: Run) -> dict[str, Tensor]:
    """Return, for each linear layer, which channels of its input do not move with the offset."""
    found = {}
    for record in outcome.records:
        if record.operation.startswith("conv") or record.operation == "linear":
            moves = outcome.shadows[record.inputs[0]].moves
            axis = moves.ndim - 1 if record.operation == "linear" else 1
            others = [dim for dim in range(moves.ndim) if dim != axis]
            found[record.path] = ~moves.amax(others)
    return found


def _convert_layer(editor: Editor, path: str, layer: nn.Module, still: Tensor | None) -> None:
    """Exchange a layer for its counterpart; those without one are left for the certificate."""
    free = 0
    if still is not None and still.any():
        if still.all() and isinstance(layer, LINEAR):
            drop_bias(editor, path, layer)  # nothing here follows the offset: any kernel will do
            return
        free = int(still.flip(0).cumprod(0).sum())
    if hasattr(layer, "parametrizations"):
        return
    if isinstance(layer, _BatchNorm):
        editor.replace(path, layer, nn.Identity())
    elif isinstance(layer, _ACTIVATION_LAYERS):
        editor.replace(path, layer, SortPool())
    elif isinstance(layer, tuple(DROPOUTS.values())):
        editor.replace(path, layer, nn.Identity())
    elif isinstance(layer, nn.AvgPool1d | nn.AvgPool2d | nn.AvgPool3d):
        if layer.count_include_pad and _is_padded(layer.padding):
            layer.count_include_pad = False
            editor.note(path, f"{type(layer).__name__} with its padding", "without")
    elif isinstance(layer, nn.ZeroPad2d | nn.ConstantPad2d):
        editor.replace(path, layer, nn.ReplicationPad2d(layer.padding))
    elif isinstance(layer, nn.MultiheadAttention):
        twin = equivariant_from(layer)
        if twin is not None:
            editor.replace(path, layer, twin)
    elif isinstance(layer, nn.Linear | _ConvNd) and is_plain(layer):
        linear = _affine_linear(layer, free)
        if linear is not None:
            now = f"affine {name_of(layer)}" if linear is layer else name_of(linear)
            editor.replace(path, layer, linear.to(layer.weight), now)


def _affine_linear(layer: nn.Linear | _ConvNd, free: int) -> nn.Module | None:
    """Return an affine layer with the projected weights of a linear one."""
    if isinstance(layer, nn.Linear):
        dense = AffineLinear(layer.in_features, layer.out_features, free_channels=free)
        return _with_weight(dense, layer.weight)
    if isinstance(layer, nn.ConvTranspose2d):
        return _affine_upsampling(layer)
    if not isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return None
    copies = layer.padding_mode in COPY_MODES
    if isinstance(layer, nn.Conv2d):
        mode: Any = layer.padding_mode if copies else "reflect"
        padding: Any = layer.padding
        conv = AffineConv2d(
            layer.in_channels,
            layer.out_channels,
            _pair(layer.kernel_size),
            _pair(layer.stride),
            padding,
            _pair(layer.dilation),
            layer.groups,
            padding_mode=mode,
            free_channels=free,
        )
        return _with_weight(conv, layer.weight)
    layer.register_parameter("bias", None)
    layer.padding_mode = layer.padding_mode if copies else "replicate"
    return constrain(layer, free_channels=free)


def _with_weight(layer: nn.Module, weight: Tensor) -> nn.Module:
    """Give a constrained layer a weight, which it projects onto its constraint."""
    layer.weight = weight.detach()
    return layer


def _pair(numbers: tuple[int, ...]) -> tuple[int, int]:
    return numbers[0], numbers[1]


def _affine_upsampling(layer: nn.ConvTranspose2d) -> nn.Module | None:
    """Return an affine layer of the same output size as a transposed convolution's."""
    dense = all(dilation == 1 for dilation in layer.dilation)
    padding: Any = layer.padding
    if layer.stride == layer.kernel_size and dense and not any((*padding, *layer.output_padding)):
        size = _pair(layer.kernel_size)
        up = AffineConvTranspose2d(layer.in_channels, layer.out_channels, size, layer.groups)
        return _with_weight(up, layer.weight)
    grown = [
        size + extra - 2 * pad
        for size, extra, pad in zip(layer.kernel_size, layer.output_padding, padding, strict=True)
    ]
    if grown != list(layer.stride) or not dense:
        return None  # its output is not a whole multiple of its input
    # Kernels that overlap sum to something else in every phase: interpolate, then convolve.
    return nn.Sequential(
        nn.Upsample(scale_factor=tuple(float(step) for step in layer.stride)),
        AffineConv2d(layer.in_channels, layer.out_channels, 3, padding=1, groups=layer.groups),
    )


def _convert_call(part: Part, node: fx.Node) -> None:
    """Exchange an operation for its counterpart."""
    if part.calls(node, _ACTIVATION_CALLS):
        part.call_instead(node, SortPool(), node.args[:1], "SortPool")
    elif part.calls(node, (*ADDITIONS, *SUBTRACTIONS)):
        if all(part.is_feature(argument) for argument in node.args[:2]):
            _join(part, node, sign=1 if node.target in ADDITIONS else -1)
    elif part.calls(node, tuple(DROPOUTS)):
        source = node.args[0]
        assert isinstance(source, fx.Node)
        part.drop(node, source, "none")
    elif part.calls(node, (F.pad,)) and _argument(node, 2, "mode", "constant") == "constant":
        amounts = _argument(node, 1, "pad")
        part.call_instead(node, ReplicatePad(), (node.args[0], amounts), "ReplicatePad")
    elif part.calls(node, AVERAGE_POOLS) and _counts_padding(node):
        node.args = node.args[:5]
        part.retarget(node, node.target, "without its padding", count_include_pad=False)  # type: ignore[arg-type]
    elif part.calls(node, (F.scaled_dot_product_attention,)):
        part.retarget(node, equivariant_attention, "equivariant_attention()")


def _argument(node: fx.Node, position: int, name: str, default: Any = None) -> Any:
    """Return an argument of a call, by position or by name."""
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def _counts_padding(node: fx.Node) -> bool:
    """Whether an average pool divides by the size of its window, padding included."""
    return (
        _argument(node, 5, "count_include_pad", True) is not False
        and _argument(node, 6, "divisor_override") is None
        and _is_padded(_argument(node, 3, "padding", 0))
    )


def _is_padded(padding: Any) -> bool:
    return any(padding) if isinstance(padding, tuple | list) else padding != 0


def _join(part: Part, node: fx.Node, sign: int) -> None:
    """Turn an addition into an affine residual with the same proportions."""
    alpha = node.kwargs.get("alpha", 1)
    if not isinstance(alpha, int | float):
        return  # known only when the network runs
    (a, weight_a), (b, weight_b) = (_without_factor(part, value) for value in node.args[:2])
    weight_b *= sign * alpha
    residual = AffineResidual()
    with torch.no_grad():
        # y - n(y) becomes 2·y - n(y): what was noise is now noise on the image.
        residual.t.fill_(weight_b / (weight_a + weight_b) if weight_b > 0 else weight_b)
    part.call_instead(node, residual, (a, b), "AffineResidual")


def _without_factor(part: Part, value: Any) -> tuple[Any, float]:
    """Return what is scaled by a number, and that number."""
    if part.calls(value, PRODUCTS):
        numbers: Sequence[Any] = [v for v in value.args if isinstance(v, int | float)]
        features = [v for v in value.args if part.is_feature(v)]
        if len(numbers) == len(features) == 1 and numbers[0] > 0:
            return features[0], float(numbers[0])
    return value, 1.0
