"""What every denoising network shares: the call, the noise maps, any size of image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import torch
from torch import Tensor

from normeq.errors import UsageError
from normeq.models.building_blocks import Variant, blocks_for
from normeq.models.network import Network, Wrapped
from normeq.models.noise_maps import TAKES_SIGMA, TakesSigma, correlation_maps, floored, sigma_map
from normeq.models.reach import SpatialStep, reach
from normeq.nn import pad_to_multiple


class SharedOptions(TypedDict, total=False):
    """The keyword arguments that every denoising network takes; see `DenoisingNetwork`."""

    takes_sigma: TakesSigma
    takes_correlation: bool
    channels: int
    separate_channels: bool
    sort: bool
    telescoped: bool


class DenoisingNetwork(Network):
    """A denoising network ``net(x, sigma=None, correlation=None)`` for images of any size.

    In the norm-equiv variants ``net(λ·x + μ, λ·σ, λ·κ) = λ·net(x, σ, κ) + μ``.

    A subclass builds its layers, gives its longest path of spatial operations to `_set_geometry`
    and defines `transform`.

    Parameters
    ----------
    variant
        What the network is equivariant to, and how.
    takes_sigma
        Whether it takes the noise level: ``"never"``, ``"optional"`` (without it, or where it is
        zero for a whole image, the level is not known) or ``"always"``.
    takes_correlation
        Whether a network that takes sigma also takes the correlation of the noise.
    channels
        1 for gray images, 3 for colour.
    separate_channels
        Whether each channel has an offset and a noise level of its own: with a vector μ and a
        map of σ for each channel, ``net(λ·x + μ, λ·σ) = λ·net(x, σ) + μ``. In the residual form
        alone, where the first kernels then sum to zero over each channel.
    sort
        Whether sort pooling takes the place of ReLU in the variants that have it. In a long
        training at a high rate, the ReLUs of a U-Net die at all scales but the finest.
    telescoped
        Whether the kernels of norm-equiv are parametrized as in the paper, for comparison.
    """

    def __init__(
        self,
        variant: Variant,
        *,
        takes_sigma: TakesSigma = "never",
        takes_correlation: bool = False,
        channels: int = 1,
        separate_channels: bool = False,
        sort: bool = False,
        telescoped: bool = False,
    ) -> None:
        super().__init__(variant)
        if telescoped and variant != "norm-equiv":
            raise UsageError(f"telescoped kernels need the variant 'norm-equiv', not '{variant}'.")
        if separate_channels and variant != "norm-equiv-residual":
            raise UsageError(
                f"separate_channels needs the variant 'norm-equiv-residual', not '{variant}'."
            )
        if takes_sigma not in TAKES_SIGMA:
            raise UsageError(
                f"takes_sigma is {takes_sigma!r}: use one of {', '.join(TAKES_SIGMA)}."
            )
        if takes_correlation and takes_sigma == "never":
            raise UsageError(
                "takes_correlation needs sigma, which scales it: use takes_sigma='optional' or "
                "'always'."
            )
        self.takes_sigma = takes_sigma
        self.takes_correlation = takes_correlation
        self.channels = channels
        self.separate_channels = separate_channels
        self.build = blocks_for(variant, sort, telescoped)
        self.stride = 1
        self.receptive_field: int | None = None

    @property
    def blind(self) -> bool:
        """Whether it works without being told the noise level."""
        return self.takes_sigma != "always"

    @property
    def offsets(self) -> int:
        """How many offsets an image may have: one, or one for each channel."""
        return self.channels if self.separate_channels else 1

    @property
    def maps(self) -> int:
        """How many noise maps the first layer takes beside the image."""
        return (self.takes_sigma != "never") * self.offsets + 2 * self.takes_correlation

    def transform(self, x: Tensor) -> Tensor:
        """Map image and noise maps, sizes multiples of `stride`, to the output."""
        raise NotImplementedError

    def forward(
        self,
        x: Tensor,
        sigma: float | Tensor | None = None,
        correlation: Tensor | None = None,
    ) -> Tensor:
        """Denoise a batch ``(N, C, H, W)``.

        Parameters
        ----------
        x
            The images.
        sigma
            Noise level in the units of `x`: a number, one for each image, or a map of shape
            ``(N, 1, H, W)`` or ``(N, C, H, W)``. Zero for a whole image, or None for all: not
            known. Inside a map that is not zero everywhere, very small values are raised (see
            `normeq.models.noise_maps.floored`), and pixels where it is exactly 0 come back
            unchanged.
        correlation
            For a network that takes it, maps of shape ``(N, 2, H, W)`` that hold, for the axes Y
            and X, ``sigma · (1 + length)``, the length in pixels as
            `normeq.noise.correlation_length` defines it. None: white noise.
        """
        output = self.with_maps(x, self.noise_maps(x, sigma, correlation))
        if sigma is None:
            return output
        level = sigma_map(sigma, x)
        free_of_noise = (level == 0) & (level.amax((1, 2, 3), keepdim=True) > 0)
        return torch.where(free_of_noise, x, output)

    def noise_maps(
        self,
        x: Tensor,
        sigma: float | Tensor | None = None,
        correlation: Tensor | None = None,
    ) -> Tensor | None:
        """Turn the arguments of a call, for whole images, into what `with_maps` takes."""
        self._check(x, sigma, correlation)
        if self.takes_sigma == "never":
            return None
        level = floored(sigma_map(0.0 if sigma is None else sigma, x))
        if level.shape[1] > self.offsets:
            raise UsageError(
                f"this {self.architecture} takes one sigma for all channels, not a map of shape "
                f"{tuple(level.shape)}."
            )
        level = level.expand(-1, self.offsets, -1, -1)
        if not self.takes_correlation:
            return level
        return torch.cat((level, correlation_maps(correlation, level)), 1)

    def with_maps(self, x: Tensor, maps: Tensor | None) -> Tensor:
        """Denoise images, or tiles of them, with the maps that `noise_maps` made of the whole.

        The output depends on images and maps within the receptive field alone.
        """
        height, width = x.shape[-2:]
        inputs = x if maps is None else torch.cat((x, maps), 1)
        inputs = pad_to_multiple(inputs, self.stride)
        output = self.transform(inputs)[..., :height, :width]
        return x + output if self.build.adds_input else output

    def _set_geometry(self, path: Sequence[SpatialStep]) -> None:
        """Derive stride and receptive field from the longest path of spatial operations."""
        self.receptive_field = reach(path)
        for step in path:
            self.stride *= step.amount if step.kind == "down" else 1

    def _check(self, x: Tensor, sigma: float | Tensor | None, correlation: Tensor | None) -> None:
        name = self.architecture
        if x.ndim != 4 or x.shape[1] != self.channels:
            raise UsageError(
                f"{name} takes images of shape (N, {self.channels}, H, W), not {tuple(x.shape)}."
            )
        if self.takes_sigma == "never" and sigma is not None:
            raise UsageError(
                f"this {name} is blind: call it without sigma, or build it with "
                "takes_sigma='optional'."
            )
        if self.takes_sigma == "always" and sigma is None:
            raise UsageError(f"this {name} is not blind: call it with sigma.")
        if correlation is not None and not self.takes_correlation:
            raise UsageError(
                f"this {name} takes no correlation: leave it out, or build it with "
                "takes_correlation=True."
            )
        if correlation is not None and sigma is None:
            raise UsageError("the correlation is given without sigma: give both, or neither.")


class WrappedDenoisingNetwork(Wrapped):
    """An ordinary denoiser made equivariant by the statistics of each whole image.

    ``net(λ·x + μ, λ·σ, λ·κ) = λ·net(x, σ, κ) + μ``, but with no finite receptive field.
    """

    inner: DenoisingNetwork
    receptive_field = None

    def __init__(self, inner: DenoisingNetwork) -> None:
        super().__init__(inner)
        self.takes_sigma = inner.takes_sigma
        self.takes_correlation = inner.takes_correlation
        self.stride = inner.stride

    @property
    def blind(self) -> bool:
        """Whether it works without being told the noise level."""
        return self.inner.blind
