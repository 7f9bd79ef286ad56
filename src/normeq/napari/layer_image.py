"""The pixels of a layer, and what the user says about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from normeq.images.axes import checked_axes

if TYPE_CHECKING:
    from normeq.images.bayer import Bayer


@dataclass(frozen=True)
class DenoiseSettings:
    """How a layer is denoised; see `normeq.denoise`.

    Attributes
    ----------
    model
        Name or weights file.
    sigma
        Noise level in the units of the layer; None lets the noise be estimated.
    strength
        Factor on the noise level.
    bayer
        The pattern of a camera's raw image.
    value_range
        What is 0 and 1 to a model that is not equivariant.
    """

    model: str = "default"
    sigma: float | None = None
    strength: float = 1.0
    bayer: Bayer | None = None
    value_range: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class LayerImage:
    """A layer at its finest resolution.

    Parameters
    ----------
    data
        A NumPy or dask array, or anything that is sliced like one.
    axes
        One letter for each axis, ``S`` last for a layer in colour.
    rgb
        Whether the layer is in colour. A fourth channel is an opacity, which stays as it is.
    """

    data: Any
    axes: str
    rgb: bool = False
    #: What was prepared to denoise it; see `normeq.napari.layer_walk`.
    walks: dict[DenoiseSettings, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        checked_axes(self.axes, tuple(self.data.shape))

    @cached_property
    def array(self) -> Any:
        """What there is to denoise: a NumPy array, or a dask array if pixels are read on demand."""
        import dask.array as da

        labelled = hasattr(self.data, "dims")  # xarray
        data = self.data.data if labelled else self.data
        if not isinstance(data, np.ndarray | da.Array):
            data = da.from_array(data)
        return data[..., :3] if self.rgb else data

    @property
    def has_opacity(self) -> bool:
        """Whether there is a channel beside the three colours."""
        return self.rgb and self.data.shape[-1] > 3

    @property
    def plane_axes(self) -> tuple[int, int]:
        """The positions of rows and columns."""
        return self.axes.index("Y"), self.axes.index("X")

    @property
    def leading_axes(self) -> list[int]:
        """The positions of all other axes but that of colours: those that have a slider."""
        count = len(self.axes) - self.rgb
        return [place for place in range(count) if place not in self.plane_axes]

    @property
    def leading_shape(self) -> tuple[int, ...]:
        """The lengths of those axes."""
        return tuple(int(self.data.shape[axis]) for axis in self.leading_axes)
