"""A foreign state dict that keeps count of what was taken from it."""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from normeq.errors import WeightsError


class StateDict:
    """Tensors by name, each to be taken once, with sentences for what is missing or left over.

    Parameters
    ----------
    tensors
        The state dict.
    layout
        The name of its layout, for those sentences.
    """

    def __init__(self, tensors: Mapping[str, Tensor], layout: str) -> None:
        self._tensors = tensors
        self._layout = layout
        self._left = dict.fromkeys(tensors)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of its first tensor."""
        return next(iter(self._tensors.values())).dtype

    def __contains__(self, key: str) -> bool:
        return key in self._tensors

    def matching(self, pattern: str) -> list[str]:
        """Return the keys that match a regular expression as a whole, in the file's order."""
        return [key for key in self._tensors if re.fullmatch(pattern, key)]

    def shape(self, key: str) -> tuple[int, ...]:
        """Return the shape of a convolution's weight: output and input channels come first."""
        shape = tuple(self._get(key).shape)
        if len(shape) != 4:
            raise WeightsError(
                f"key {key!r} of shape {shape} is not the weight of a 2d convolution: this file "
                f"does not fit the layout {self._layout!r}."
            )
        return shape

    def take(self, key: str) -> Tensor:
        """Return a tensor and strike it off the list."""
        tensor = self._get(key)
        self._left.pop(key, None)
        return tensor

    def expect_empty(self) -> None:
        """Refuse a state dict that holds more than was taken."""
        if self._left:
            odd = next(iter(self._left))
            raise WeightsError(
                f"key {odd!r} has no place in the layout {self._layout!r}: try another layout or "
                "variant."
            )

    def _get(self, key: str) -> Tensor:
        if key not in self._tensors:
            first = next(iter(self._tensors), None)
            raise WeightsError(
                f"the layout {self._layout!r} calls for a key {key!r}, which this file lacks; "
                f"its first key is {first!r}."
            )
        return self._tensors[key]
