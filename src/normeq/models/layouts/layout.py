"""What a layout tells, and how sizes are read off a checkpoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from normeq.errors import WeightsError
from normeq.models.building_blocks import Variant
from normeq.models.layouts.checkpoint import Checkpoint


class Layout(ABC):
    """The names and meanings of the tensors in one project's checkpoints."""

    @abstractmethod
    def recognise(
        self, checkpoint: Checkpoint, variant: Variant | None
    ) -> tuple[str, dict[str, Any]]:
        """Tell the network from keys and shapes: its name and the options of `create`."""

    @abstractmethod
    def source_name(self, name: str, scales: int) -> str:
        """Return the source's name for one of our layers, in a network of so many scales."""

    def kernel(self, checkpoint: Checkpoint, source: str, layer: nn.Module) -> Tensor:
        """Return the kernel that a layer of the source applies."""
        return checkpoint.take(f"{source}.weight")


def stack_sizes(checkpoint: Checkpoint, prefix: str) -> tuple[int, int, dict[str, int]]:
    """Return inputs, outputs and sizes of a chain ``prefix.{0,2,...}`` of convolutions."""
    weights = checkpoint.matching(rf"{prefix}\.\d+\.weight")
    for index, key in enumerate(weights):
        if key != f"{prefix}.{2 * index}.weight":
            raise WeightsError(f"key {key!r} is odd: convolutions are every other layer.")
    depth = len(weights)
    width, inputs, *_ = checkpoint.shape(f"{prefix}.0.weight")
    outputs = checkpoint.shape(f"{prefix}.{2 * depth - 2}.weight")[0]
    return inputs, outputs, {"width": width, "depth": depth}


def drunet_options(checkpoint: Checkpoint, down: str, blocks: str) -> dict[str, Any]:
    """Return the options of a DRUNet from its head, tail and strided convolutions.

    Parameters
    ----------
    checkpoint
        The tensors.
    down
        Pattern of the keys of the convolutions that halve the resolution.
    blocks
        Pattern of the keys of the coarsest blocks' first convolutions.
    """
    inputs = checkpoint.shape("m_head.weight")[1]
    channels = checkpoint.shape("m_tail.weight")[0]
    finest = checkpoint.shape("m_tail.weight")[1]
    coarser = [checkpoint.shape(key)[0] for key in checkpoint.matching(down)]
    return {
        "channels": channels,
        "blind": inputs == channels,
        "widths": (finest, *coarser),
        "blocks": len(checkpoint.matching(blocks)),
    }
