"""What a layout tells, and how sizes are read from the shapes of tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from normeq.errors import WeightsError
from normeq.models.building_blocks import Variant
from normeq.models.published.state_dict import StateDict


class PublishedFormat(ABC):
    """The names and meanings of the tensors in one project's files."""

    @abstractmethod
    def recognise(self, tensors: StateDict, variant: Variant | None) -> tuple[str, dict[str, Any]]:
        """Tell the network from keys and shapes: its name and the options of `create`."""

    @abstractmethod
    def source_name(self, name: str, scales: int) -> str:
        """Return the source's name for one of our layers, in a network with that many scales."""

    def kernel(self, tensors: StateDict, source: str, layer: nn.Module) -> Tensor:
        """Return the kernel that a layer of the source applies."""
        return tensors.take(f"{source}.weight")


def stack_sizes(tensors: StateDict, prefix: str) -> tuple[int, int, dict[str, int]]:
    """Return inputs, outputs and sizes of a chain ``prefix.{0,2,...}`` of convolutions."""
    weights = tensors.matching(rf"{prefix}\.\d+\.weight")
    for index, key in enumerate(weights):
        if key != f"{prefix}.{2 * index}.weight":
            raise WeightsError(
                f"key {key!r} is unexpected: only every other layer is a convolution."
            )
    depth = len(weights)
    width, inputs, *_ = tensors.shape(f"{prefix}.0.weight")
    outputs = tensors.shape(f"{prefix}.{2 * depth - 2}.weight")[0]
    return inputs, outputs, {"width": width, "depth": depth}


def drunet_options(tensors: StateDict, down: str, blocks: str) -> dict[str, Any]:
    """Return the options of a DRUNet from its head, tail and strided convolutions.

    Parameters
    ----------
    tensors
        The tensors.
    down
        Pattern of the keys of the convolutions that halve the resolution.
    blocks
        Pattern of the keys of the coarsest blocks' first convolutions.
    """
    inputs = tensors.shape("m_head.weight")[1]
    channels = tensors.shape("m_tail.weight")[0]
    finest = tensors.shape("m_tail.weight")[1]
    coarser = [tensors.shape(key)[0] for key in tensors.matching(down)]
    return {
        "channels": channels,
        "blind": inputs == channels,
        "widths": (finest, *coarser),
        "blocks": len(tensors.matching(blocks)),
    }
