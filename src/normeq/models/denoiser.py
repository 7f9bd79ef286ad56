"""What every denoising network shares: the call, the noise map, any size of image."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from normeq.errors import UsageError
from normeq.models.network import Network, Wrapped
from normeq.models.reach import Step, reach
from normeq.models.vocabulary import Variant, vocabulary
from normeq.nn import pad_to_multiple


class Denoiser(Network):
    """A denoising network ``net(x, sigma=None)`` for images of any height and width.

    In the norm-equiv variants ``net(λ·x + μ, λ·σ) = λ·net(x, σ) + μ``.

    A subclass builds its layers, gives its longest path of spatial operations to `_set_geometry`
    and defines `transform`.

    Parameters
    ----------
    variant
        What the network is equivariant to, and how.
    blind
        Whether it works without being told the noise level.
    channels
        1 for gray images, 3 for colour.
    sort
        Whether sort pooling takes the place of ReLU in the variants that have it.
    """

    def __init__(self, variant: Variant, *, blind: bool, channels: int, sort: bool = False) -> None:
        super().__init__(variant)
        self.blind = blind
        self.channels = channels
        self.words = vocabulary(variant, sort)
        self.stride = 1
        self.receptive_field: int | None = None

    @property
    def maps(self) -> int:
        """How many noise maps the first layer takes beside the image."""
        return 0 if self.blind else 1

    def transform(self, x: Tensor) -> Tensor:
        """Map image and noise map, sizes multiples of `stride`, to the output."""
        raise NotImplementedError

    def forward(self, x: Tensor, sigma: float | Tensor | None = None) -> Tensor:
        """Denoise a batch ``(N, C, H, W)``.

        Parameters
        ----------
        x
            The images.
        sigma
            Noise level in the units of `x`, for a non-blind network: a number, one for each
            image, or a map of shape ``(N, 1, H, W)``.
        """
        self._check(x, sigma)
        height, width = x.shape[-2:]
        inputs = x if sigma is None else torch.cat((x, _noise_map(sigma, x)), 1)
        inputs = pad_to_multiple(inputs, self.stride)
        output = self.transform(inputs)[..., :height, :width]
        return x + output if self.words.adds_input else output

    def _set_geometry(self, path: Sequence[Step]) -> None:
        """Derive stride and receptive field from the longest path of spatial operations."""
        self.receptive_field = reach(path)
        for step in path:
            self.stride *= step.amount if step.kind == "down" else 1

    def _check(self, x: Tensor, sigma: float | Tensor | None) -> None:
        if x.ndim != 4 or x.shape[1] != self.channels:
            raise UsageError(
                f"{self.architecture} takes images of shape (N, {self.channels}, H, W), "
                f"not {tuple(x.shape)}."
            )
        if self.blind and sigma is not None:
            raise UsageError(
                f"this {self.architecture} is blind: call it without sigma, or build it with "
                "blind=False."
            )
        if not self.blind and sigma is None:
            raise UsageError(f"this {self.architecture} is not blind: call it with sigma.")


class WrappedDenoiser(Wrapped):
    """An ordinary denoiser made equivariant by the statistics of each whole image.

    ``net(λ·x + μ, λ·σ) = λ·net(x, σ) + μ``, but with no finite receptive field.
    """

    inner: Denoiser
    receptive_field = None

    def __init__(self, inner: Denoiser) -> None:
        super().__init__(inner)
        self.blind = inner.blind
        self.stride = inner.stride


def _noise_map(sigma: float | Tensor, x: Tensor) -> Tensor:
    """Spread a noise level, or one for each image, over a map; maps pass through."""
    sigma = torch.as_tensor(sigma, dtype=x.dtype, device=x.device)
    shape = (x.shape[0], 1, *x.shape[-2:])
    if sigma.ndim <= 1:
        if sigma.numel() not in (1, x.shape[0]):
            raise UsageError(f"{sigma.numel()} values of sigma do not fit {x.shape[0]} images.")
        sigma = sigma.reshape(-1, 1, 1, 1)
    elif sigma.shape != shape:
        raise UsageError(f"a noise map of shape {tuple(sigma.shape)} must have shape {shape}.")
    return sigma.expand(shape)
