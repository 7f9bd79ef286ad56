"""The affine form: kernels that sum to one, sort pooling, affine residuals, copy padding."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from normeq.certification.findings import Propagation
from normeq.conversion.affine_twins import affine_attention, affine_linear
from normeq.conversion.batch_norm import (
    LINEAR,
    fold_batch_norms,
    has_statistics,
    is_plain,
    show_ratios,
)
from normeq.conversion.forward_pass import ForwardPass
from normeq.conversion.network_editor import NetworkEditor
from normeq.conversion.operations import (
    ADDITIONS,
    AVERAGE_POOLS,
    DROPOUTS,
    KINKED_CALLS,
    KINKED_LAYERS,
    PRODUCTS,
    QUOTIENTS,
    SMOOTH_CALLS,
    SMOOTH_LAYERS,
    SUBTRACTIONS,
    TANHS,
    argument,
    class_name,
)
from normeq.conversion.rule_tables import CallRule, LayerRule, apply_rules, for_each, replace_by
from normeq.conversion.scale_form import drop_bias
from normeq.nn import AffineResidual, SortPool, equivariant_attention
from normeq.nn.padding import ReplicatePad


def make_affine(editor: NetworkEditor, outcome: Propagation | None) -> None:
    """Convert so that every feature follows gain and offset, as the paper does.

    Kernels are projected onto those that sum to one, except on channels that the certificate's
    `outcome` shows not to move with the offset (noise maps); activations become sort pooling,
    additions affine residuals. Batch norm is folded and what is left of it dropped, unless it is in
    training mode, in which it sees ratios.
    """
    fold_batch_norms(editor)
    still = {} if outcome is None else outcome.still
    apply_rules(editor, _LAYER_RULES, _CALL_RULES, still)
    editor.finish()


def _convert_linear(
    editor: NetworkEditor, path: str, layer: nn.Module, still: Tensor | None
) -> None:
    """Project the kernels; where nothing follows the offset, any kernel will do."""
    if still is not None and still.all():
        drop_bias(editor, path, layer, still)
        return
    if hasattr(layer, "parametrizations") or not is_plain(layer):
        return  # its kernels are computed from others: left for the certificate
    free = 0 if still is None else int(still.flip(0).cumprod(0).sum())
    twin = affine_linear(layer, free)
    if twin is not None:
        now = f"affine {class_name(layer)}" if twin is layer else class_name(twin)
        editor.replace(path, layer, twin.to(layer.weight), now)  # type: ignore[arg-type]


def _convert_batch_norm(
    editor: NetworkEditor, path: str, layer: _BatchNorm, still: Tensor | None
) -> None:
    if has_statistics(layer) and layer.training:
        show_ratios(editor, path, layer, offset=True)
    elif has_statistics(layer):
        editor.replace(path, layer, nn.Identity())


def _leave_padding_out(editor: NetworkEditor, path: str, layer: Any, still: Tensor | None) -> None:
    if layer.count_include_pad and _is_padded(layer.padding):
        twin = copy.copy(layer)
        twin.count_include_pad = False
        editor.replace(path, layer, twin, f"{class_name(layer)} without its padding")


def _copy_the_border(editor: NetworkEditor, path: str, layer: Any, still: Tensor | None) -> None:
    editor.replace(path, layer, nn.ReplicationPad2d(layer.padding))


def _convert_attention(
    editor: NetworkEditor, path: str, layer: nn.MultiheadAttention, still: Tensor | None
) -> None:
    twin = affine_attention(layer)
    if twin is not None:
        editor.replace(path, layer, twin)


def _is_padded(padding: Any) -> bool:
    return any(padding) if isinstance(padding, tuple | list) else padding != 0


def _sort(forward: ForwardPass, node: fx.Node) -> None:
    forward.call_layer(node, SortPool(), node.args[:1], "SortPool")


def _skip(forward: ForwardPass, node: fx.Node) -> None:
    source = node.args[0]
    assert isinstance(source, fx.Node)
    forward.leave_out(node, source)


def _replicate(forward: ForwardPass, node: fx.Node) -> None:
    if argument(node, 2, "mode", "constant") == "constant":
        amounts = argument(node, 1, "pad")
        forward.call_layer(node, ReplicatePad(), (node.args[0], amounts), "ReplicatePad")


def _average_without_padding(forward: ForwardPass, node: fx.Node) -> None:
    counts_padding = (
        argument(node, 5, "count_include_pad", True) is not False
        and argument(node, 6, "divisor_override") is None
        and _is_padded(argument(node, 3, "padding", 0))
    )
    if counts_padding:
        pool: Any = node.target
        options = {**node.kwargs, "count_include_pad": False}
        forward.call_function(node, pool, node.args[:5], "without its padding", **options)


def _attend_by_ratios(forward: ForwardPass, node: fx.Node) -> None:
    forward.call_function(
        node, equivariant_attention, node.args, "equivariant_attention()", **node.kwargs
    )


def _join(forward: ForwardPass, node: fx.Node) -> None:
    """Turn an addition or subtraction into an affine residual with the same proportions."""
    alpha = node.kwargs.get("alpha", 1)
    both = all(forward.is_feature(value) for value in node.args[:2])
    if not both or not isinstance(alpha, int | float):
        return  # a constant, or a proportion known only when the network runs
    if all(_is_weighted(forward, value) for value in node.args[:2]):
        return  # masks or gates, whose weights may add up to one
    sign = 1 if node.target in ADDITIONS else -1
    (a, weight_a), (b, weight_b) = (_without_factor(forward, value) for value in node.args[:2])
    weight_b *= sign * alpha
    forward.totals[node] = weight_a + weight_b
    residual = AffineResidual()
    with torch.no_grad():
        # y - n(y) becomes 2·y - n(y): what was noise is now noise on the image.
        residual.t.fill_(weight_b / (weight_a + weight_b) if weight_b > 0 else weight_b)
    forward.call_layer(node, residual, (a, b), "AffineResidual")


def _is_weighted(forward: ForwardPass, value: Any) -> bool:
    """Whether a value is a product of tensors."""
    return forward.calls(value, PRODUCTS) and all(isinstance(v, fx.Node) for v in value.args)


def _leave_the_mean(forward: ForwardPass, node: fx.Node) -> None:
    """Leave out a factor that makes a sum a mean, for the affine residual is one already."""
    sums = [v for v in node.args if isinstance(v, fx.Node) and v in forward.totals]
    numbers = [value for value in node.args if isinstance(value, int | float)]
    if len(sums) == len(numbers) == 1:
        total = forward.totals[sums[0]]
        share = numbers[0] if node.target in PRODUCTS else 1 / numbers[0]
        if math.isclose(total * share, 1.0):
            forward.leave_out(node, sums[0])


def _without_factor(forward: ForwardPass, value: Any) -> tuple[Any, float]:
    """Return what is scaled by a number, and that number."""
    if forward.calls(value, PRODUCTS):
        numbers: Sequence[Any] = [v for v in value.args if isinstance(v, int | float)]
        features = [v for v in value.args if forward.is_feature(v)]
        if len(numbers) == len(features) == 1 and numbers[0] > 0:
            return features[0], float(numbers[0])
    return value, 1.0


_LAYER_RULES: dict[type[nn.Module], LayerRule] = {
    _BatchNorm: _convert_batch_norm,
    **for_each((*SMOOTH_LAYERS, *KINKED_LAYERS, nn.Tanh), replace_by(SortPool)),
    **for_each(DROPOUTS.values(), replace_by(nn.Identity)),
    **for_each((nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d), _leave_padding_out),
    **for_each((nn.ZeroPad2d, nn.ConstantPad2d), _copy_the_border),
    nn.MultiheadAttention: _convert_attention,
    **for_each(LINEAR, _convert_linear),
}
_CALL_RULES: dict[Any, CallRule] = {
    **for_each((*SMOOTH_CALLS, *KINKED_CALLS, *TANHS), _sort),
    **for_each((*ADDITIONS, *SUBTRACTIONS), _join),
    **for_each((*PRODUCTS, *QUOTIENTS), _leave_the_mean),
    **for_each(DROPOUTS, _skip),
    **for_each(AVERAGE_POOLS, _average_without_padding),
    F.pad: _replicate,
    F.scaled_dot_product_attention: _attend_by_ratios,
}
