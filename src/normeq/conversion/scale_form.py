"""The scale-equivariant form: no biases, and activations that see ratios."""

from __future__ import annotations

from torch import Tensor, fx, nn
from torch.nn.modules.batchnorm import _BatchNorm

from normeq.conversion.batch_norm import (
    LINEAR,
    ChannelGain,
    fold_batch_norms,
    gain_of,
    has_statistics,
    show_ratios,
)
from normeq.conversion.forward_pass import ForwardPass
from normeq.conversion.network_editor import NetworkEditor
from normeq.conversion.operations import SMOOTH_CALLS, called_name
from normeq.conversion.rule_tables import CallRule, LayerRule, apply_rules, for_each
from normeq.nn import Enclosed


def make_homogeneous(editor: NetworkEditor) -> None:
    """Convert so that ``f(λ·y) = λ·f(y)``: weights are kept, shifts are dropped.

    Batch norm is folded into the layer before it, or leaves a gain for each channel, unless it is
    in training mode, in which it sees ratios; biases go.
    Calls of smooth activations see ratios; layers that have to are left for `enclose_culprits`.
    """
    fold_batch_norms(editor)
    apply_rules(editor, _LAYER_RULES, _CALL_RULES, {})
    editor.finish()


def drop_bias(editor: NetworkEditor, path: str, layer: nn.Module, still: Tensor | None) -> None:
    """Remove a layer's bias; one that is computed from others is left for the certificate."""
    if layer._parameters.get("bias") is not None:
        layer.register_parameter("bias", None)
        editor.note(path, "bias", "none")


def _convert_batch_norm(
    editor: NetworkEditor, path: str, layer: _BatchNorm, still: Tensor | None
) -> None:
    if has_statistics(layer) and layer.training:
        show_ratios(editor, path, layer, offset=False)
    elif has_statistics(layer):
        editor.replace(path, layer, ChannelGain(gain_of(layer)))


def _show_ratios(forward: ForwardPass, node: fx.Node) -> None:
    """Enclose a call of an activation, as a layer with the same options."""
    layer = SMOOTH_CALLS[node.target](*node.args[1:], **node.kwargs)
    enclosed = Enclosed(layer, forward.usual_size(node.args[0]))
    forward.call_layer(node, enclosed, node.args[:1], f"{called_name(node)}() of ratios")


_LAYER_RULES: dict[type[nn.Module], LayerRule] = {
    _BatchNorm: _convert_batch_norm,
    **for_each(LINEAR, drop_bias),
}
_CALL_RULES: dict[object, CallRule] = for_each(SMOOTH_CALLS, _show_ratios)
