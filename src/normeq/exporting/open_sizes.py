"""Traces of networks that leave batch, height and width open, for every size from 1 up."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn
from torch.fx.experimental import _config as fx_config

from normeq.certification.tracing import TRACER_LOCK, quiet_tracer
from normeq.denoising.introspection import (
    Law,
    declared_law,
    proven_law,
    takes_sigma,
    weights_digest,
)
from normeq.denoising.network_denoiser import measure_bytes_per_pixel
from normeq.errors import UsageError, calling, reason
from normeq.models import DenoisingNetwork
from normeq.models.noise_maps import TakesSigma
from normeq.nn import fold
from normeq.nn.inputs import image_channels, spatial_axes

# Neither size divides a stride, and neither divides the other: what a trace decides for this
# example it would have to decide for nearly every size.
_EXAMPLE = (2, 101, 75)


class ExportedNetwork(nn.Module):
    """A folded network in single precision, called with an image and, if it is told, with maps.

    ``net(λ·x + μ, λ·σ, λ·κ) = λ·net(x, σ, κ) + μ`` for a norm-equivariant network. Without maps
    the noise is not known. Maps count as they are, pixel by pixel: what a network of ours does
    with the maps of a whole image (`normeq.models.noise_maps.floored`) is left to the caller, so
    that tiles give what the whole image gives.

    Parameters
    ----------
    net
        Any network of images; left as it is.
    with_sigma
        Whether the maps are inputs.
    name
        What messages call it.
    """

    def __init__(self, net: nn.Module, *, with_sigma: bool, name: str) -> None:
        super().__init__()
        self.name = name
        sigma = takes_sigma(net)
        if with_sigma and sigma == "never":
            raise UsageError(f"{name} takes no noise level: leave out with_sigma (--with-sigma).")
        if not with_sigma and sigma == "always":
            raise UsageError(
                f"{name} needs the noise level as an input: pass with_sigma=True (--with-sigma)."
            )
        if spatial_axes(net) != 2:
            raise UsageError(
                f"{name} does not take two-dimensional images, and only networks that do can be "
                "exported."
            )
        self.takes_sigma: TakesSigma = sigma if with_sigma else "never"
        self.offsets = int(getattr(net, "offsets", 1))
        correlated = with_sigma and bool(getattr(net, "takes_correlation", False))
        self.map_channels = [self.offsets] * with_sigma + [2] * correlated
        self.channels = image_channels(net) or 1
        self.receptive_field: int | None = getattr(net, "receptive_field", None)
        self.stride = int(getattr(net, "stride", 1))
        self.digest = weights_digest(net)
        self.law: Law = declared_law(net)
        if self.law == "none":
            self.law = proven_law(net)
        self.net = fold(net).float().cpu()
        for parameter in self.net.parameters():
            # The order of channels in memory would become a question of sizes in the trace.
            parameter.data = parameter.data.contiguous()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return ("image", "sigma", "correlation")[: 1 + len(self.map_channels)]

    def forward(self, image: Tensor, *maps: Tensor) -> Tensor:
        """Denoise images of any size."""
        output: Tensor
        if not isinstance(self.net, DenoisingNetwork):
            output = self.net(image, *maps)
            return output
        known = torch.cat(maps, 1) if maps else None
        if known is None and self.net.maps:
            samples, _, height, width = image.shape
            known = image.new_zeros((samples, self.net.maps, height, width))
        return self.net.with_maps(image, known)

    def example(self, samples: int, height: int, width: int, seed: int = 0) -> list[Tensor]:
        """Return random inputs of a size."""
        random = torch.Generator().manual_seed(seed)
        shapes = [(samples, count, height, width) for count in (self.channels, *self.map_channels)]
        return [torch.rand(shape, generator=random) for shape in shapes]

    def bytes_per_pixel(self) -> int:
        """Return the size of the largest activation, for each pixel of the image."""
        return measure_bytes_per_pixel(self, *self.example(1, 64, 64))


def trace_open(net: ExportedNetwork) -> torch.export.ExportedProgram:
    """Trace a network with torch.export, for every batch, height and width from 1 up."""
    example = tuple(net.example(*_EXAMPLE))
    with calling(net.name, f"images of {_EXAMPLE[1]} x {_EXAMPLE[2]} pixels"), torch.no_grad():
        output = net(*example)
    if not isinstance(output, Tensor) or output.shape != example[0].shape:
        raise UsageError(
            f"{net.name} cannot be exported: its output has another shape than the image."
        )
    open_axes = dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)
    of_maps = (open_axes,) * len(net.map_channels)
    try:
        with TRACER_LOCK, warnings.catch_warnings(), quiet_tracer(), torch.no_grad():
            warnings.simplefilter("ignore")
            # Sizes of 1 are not set apart: the trace holds for them too.
            with fx_config.patch(backed_size_oblivious=True):  # type: ignore[attr-defined]
                return torch.export.export(
                    net,
                    example,
                    dynamic_shapes=(open_axes, of_maps) if of_maps else (open_axes,),
                    strict=False,
                )
    except Exception as error:  # the tracer or the network's own code may fail in any way
        raise UsageError(
            f"{net.name} cannot be exported for images of any size ({reason(error)})."
        ) from error
