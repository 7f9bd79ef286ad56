"""The scale-equivariant form: no biases, and activations that scale with their input."""

from __future__ import annotations

from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from normeq.conversion.batch_norm import LINEAR, ChannelGain, fold_batch_norms, gain_of
from normeq.conversion.editor import SMOOTH_CALLS, SMOOTH_LAYERS, Editor


def make_homogeneous(editor: Editor) -> None:
    """Convert so that ``f(λ·y) = λ·f(y)``: weights are kept, shifts are dropped.

    Batch norm is folded into the layer before it, or leaves a gain for each channel; biases go;
    smooth activations become ReLU.
    """
    fold_batch_norms(editor)
    for path, layer in editor.layers():
        if isinstance(layer, _BatchNorm) and layer.running_var is not None:
            editor.replace(path, layer, ChannelGain(gain_of(layer)))
        elif isinstance(layer, SMOOTH_LAYERS):
            editor.replace(path, layer, nn.ReLU())
        elif isinstance(layer, LINEAR):
            drop_bias(editor, path, layer)
    for part in editor.parts():
        for node in part.nodes:
            if part.calls(node, SMOOTH_CALLS):
                node.args, node.kwargs = node.args[:1], {}
                part.retarget(node, F.relu, "relu()")


def drop_bias(editor: Editor, path: str, layer: nn.Module) -> None:
    """Remove a layer's bias; one that is computed from others is left for the certificate."""
    if layer._parameters.get("bias") is not None:
        layer.register_parameter("bias", None)
        editor.note(path, "bias", "none")
