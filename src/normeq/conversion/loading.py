"""Trained weights for a network that is to be converted."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from normeq.errors import WeightsError, reason
from normeq.models.published import read_state_dict
from normeq.nn.own_source import located


def load_weights(network: nn.Module, path: Path) -> None:
    """Give a network the weights of a state dict, a .safetensors file or a .pth file of tensors."""
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            state = load_file(path)
        except (SafetensorError, OSError) as error:
            raise WeightsError(f"{path} is not a complete safetensors file: {error}") from error
    else:
        state = read_state_dict(path)
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise WeightsError(
            f"{path} does not contain the weights of {located(network)}: {reason(error)}"
        ) from error
