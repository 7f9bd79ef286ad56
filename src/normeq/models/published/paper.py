"""The layout of the paper on normalization-equivariant networks: FDnCNN and DRUNet."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from normeq.errors import UsageError, WeightsError
from normeq.models.building_blocks import Variant
from normeq.models.published.format import PublishedFormat, drunet_options, stack_sizes
from normeq.models.published.state_dict import StateDict
from normeq.nn import AffineConv2d, AffineConvTranspose2d, KernelSum


class PaperFormat(PublishedFormat):
    """Three variants under the same names.

    Tensors of the norm-equiv variant are unconstrained: a kernel is their difference with their
    circular shift, plus ``1/n``. Upsampling is a 1x1 convolution followed by a pixel shuffle.
    """

    def recognise(self, tensors: StateDict, variant: Variant | None) -> tuple[str, dict[str, Any]]:
        if variant in ("norm-equiv-residual", "norm-equiv-wrapped"):
            raise WeightsError(f"the layout 'paper' has no {variant} networks.")
        if "m_head.weight" in tensors:
            down = r"m_down\.\d+\.\d+\.weight"
            options = drunet_options(tensors, down, r"m_body\.\d+\.m_res\.0\.weight")
        else:
            inputs, channels, sizes = stack_sizes(tensors, "fdncnn")
            options = {"channels": channels, "blind": inputs == channels, **sizes}
        architecture = "drunet" if "m_head.weight" in tensors else "fdncnn"
        return architecture, {"variant": variant or _variant(tensors, architecture), **options}

    def source_name(self, name: str, scales: int) -> str:
        if name.startswith("layers."):
            return name.replace("layers.", "fdncnn.")
        if name.startswith("skips."):
            return name.replace("skips.", "res.")
        return "m_" + name.replace(".branch.", ".m_res.").replace(".residual", ".sum")

    def kernel(self, tensors: StateDict, source: str, layer: nn.Module) -> Tensor:
        if isinstance(layer, AffineConvTranspose2d):
            # Channel 4c + 2i + j of the 1x1 convolution becomes pixel (i, j) of channel c.
            kernel = _telescoped(tensors.take(f"{source}.conv1x1.weight"))
            return kernel.reshape(-1, 2, 2, kernel.shape[1]).permute(3, 0, 1, 2)
        kernel = super().kernel(tensors, source, layer)
        if isinstance(layer, AffineConv2d):
            (constraint,) = layer.parametrizations["weight"]  # type: ignore[index]
            return _telescoped(kernel, constraint.free_channels)
        return kernel


def _telescoped(weight: Tensor, free_channels: int = 0) -> Tensor:
    kernel: Tensor = KernelSum(free_channels=free_channels, method="telescope")(weight)
    return kernel


def _variant(tensors: StateDict, architecture: str) -> Variant:
    """Tell the variant by the keys that only it has."""
    if tensors.matching(r".*\.alpha"):
        return "norm-equiv"
    if tensors.matching(r".*\.bias"):
        return "ordinary"
    if architecture == "drunet":
        return "scale-equiv"
    raise UsageError(
        "this FDnCNN without biases may be scale-equiv or norm-equiv, which its tensors do not "
        "tell: name the variant."
    )
