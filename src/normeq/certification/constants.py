"""What a traced network computes without the image: in double precision, where sums are exact."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx

from normeq.certification.graph_nodes import output_format


def compute_constant(target: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute what does not depend on the image, in double precision."""
    kwargs = dict(kwargs)
    dtype = kwargs.get("dtype")
    if dtype is not None and dtype.is_floating_point:
        kwargs["dtype"] = torch.float64
    if "device" in kwargs:
        kwargs["device"] = torch.device("cpu")
    result = target(*args, **kwargs)
    if isinstance(result, Tensor):
        return in_double(result)
    if isinstance(result, list | tuple):
        return [in_double(part) if isinstance(part, Tensor) else part for part in result]
    return result


def in_double(tensor: Tensor) -> Tensor:
    """Return a constant in double precision, in which kernel sums are exact."""
    tensor = tensor.detach().cpu()
    return tensor.double() if tensor.is_floating_point() else tensor


def shape_alone(node: fx.Node, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Replace a tensor of which only the shape matters by an empty one."""
    options = {"dtype": output_format(node), "device": torch.device("cpu")}
    return (torch.empty(args[0].shape), *args[1:]), kwargs | options
