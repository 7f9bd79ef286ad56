"""The scale-equivariant form: no biases, and activations that scale with their input."""

from __future__ import annotations

from torch import Tensor, fx, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from normeq.conversion.batch_norm import (
    LINEAR,
    ChannelGain,
    fold_batch_norms,
    gain_of,
    has_statistics,
)
from normeq.conversion.forward_pass import ForwardPass
from normeq.conversion.network_editor import NetworkEditor
from normeq.conversion.operations import SMOOTH_CALLS, SMOOTH_LAYERS
from normeq.conversion.rule_tables import CallRule, LayerRule, apply_rules, for_each, replace_by


def make_homogeneous(editor: NetworkEditor) -> None:
    """Convert so that ``f(λ·y) = λ·f(y)``: weights are kept, shifts are dropped.

    Batch norm is folded into the layer before it, or leaves a gain for each channel; biases go;
    smooth activations become ReLU.
    """
    fold_batch_norms(editor)
    apply_rules(editor, _LAYER_RULES, _CALL_RULES, {})
    editor.finish()


def drop_bias(editor: NetworkEditor, path: str, layer: nn.Module, still: Tensor | None) -> None:
    """Remove a layer's bias; one that is computed from others is left for the certificate."""
    if layer._parameters.get("bias") is not None:
        layer.register_parameter("bias", None)
        editor.note(path, "bias", "none")


def _leave_the_gain(
    editor: NetworkEditor, path: str, layer: _BatchNorm, still: Tensor | None
) -> None:
    if has_statistics(layer):
        editor.replace(path, layer, ChannelGain(gain_of(layer)))


def _call_relu(forward: ForwardPass, node: fx.Node) -> None:
    forward.call_function(node, F.relu, node.args[:1], "relu()")


_LAYER_RULES: dict[type[nn.Module], LayerRule] = {
    _BatchNorm: _leave_the_gain,
    **for_each(SMOOTH_LAYERS, replace_by(nn.ReLU)),
    **for_each(LINEAR, drop_bias),
}
_CALL_RULES: dict[object, CallRule] = for_each(SMOOTH_CALLS, _call_relu)
