"""The layout of KAIR and DPIR: DnCNN, FDnCNN, FFDNet and DRUNet."""

from __future__ import annotations

import re
from typing import Any

from normeq.errors import WeightsError
from normeq.models.building_blocks import Variant
from normeq.models.published.format import PublishedFormat, drunet_options, stack_sizes
from normeq.models.published.state_dict import StateDict


class KairFormat(PublishedFormat):
    """Zero-padded convolutions with ReLU; DnCNN gives the noise, to be subtracted."""

    def recognise(self, tensors: StateDict, variant: Variant | None) -> tuple[str, dict[str, Any]]:
        biased = tensors.matching(r".*\.bias")
        chosen = variant or ("ordinary" if biased else "scale-equiv")
        if chosen not in ("ordinary", "scale-equiv"):
            raise WeightsError(f"the layout 'kair' has no {chosen} networks.")
        if "m_head.weight" in tensors:
            options = drunet_options(
                tensors, r"m_down\d\.\d+\.weight", r"m_body\.\d+\.res\.0\.weight"
            )
            return "drunet", {"variant": chosen, **options}
        architecture, options = _stack(tensors)
        return architecture, {"variant": chosen, **options}

    def source_name(self, name: str, scales: int) -> str:
        if name.startswith("layers."):
            return name.replace("layers.", "model.")
        name = name.replace(".branch.", ".res.")
        name = re.sub(r"^down\.(\d+)", lambda found: f"down{int(found[1]) + 1}", name)
        name = re.sub(r"^up\.(\d+)", lambda found: f"up{scales - 1 - int(found[1])}", name)
        return f"m_{name}"


def _stack(tensors: StateDict) -> tuple[str, dict[str, Any]]:
    """Tell the three plain stacks by the channels they take and give."""
    inputs, outputs, sizes = stack_sizes(tensors, "model")
    maps = inputs - outputs
    if maps == 0:
        return "fdncnn", {"channels": outputs, "blind": True, "residual": True, **sizes}
    if outputs % 4 == 0:
        return "ffdnet", {"channels": outputs // 4, "blind": False, **sizes}
    return "fdncnn", {"channels": outputs, "blind": False, **sizes}
