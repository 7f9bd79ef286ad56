"""The functions, methods and layers that conversions recognise, by what they do."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _NormBase

ADDITIONS = (operator.add, operator.iadd, torch.add, "add", "add_")
SUBTRACTIONS = (operator.sub, operator.isub, torch.sub, "sub", "sub_")
PRODUCTS = (operator.mul, operator.imul, torch.mul, "mul", "mul_")

#: Activations that bend at a scale of their own, as functions and as layers; their options agree.
SMOOTH_CALLS: dict[Any, type[nn.Module]] = {
    F.gelu: nn.GELU,
    F.silu: nn.SiLU,
    F.elu: nn.ELU,
    F.celu: nn.CELU,
    F.selu: nn.SELU,
    F.softplus: nn.Softplus,
    F.mish: nn.Mish,
    F.hardswish: nn.Hardswish,
    F.relu6: nn.ReLU6,
}
SMOOTH_LAYERS = tuple(SMOOTH_CALLS.values())
#: Activations that scale with their input.
KINKED_LAYERS = (nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.RReLU)
KINKED_CALLS = (F.relu, torch.relu, F.leaky_relu, F.prelu, F.rrelu, "relu", "relu_")
TANHS = (torch.tanh, F.tanh, "tanh")

#: Dropout as a function, which is told the mode, and as a layer, which knows it.
DROPOUTS: dict[Any, type[nn.Module]] = {
    F.dropout: nn.Dropout,
    F.dropout1d: nn.Dropout1d,
    F.dropout2d: nn.Dropout2d,
    F.dropout3d: nn.Dropout3d,
    F.alpha_dropout: nn.AlphaDropout,
}
AVERAGE_POOLS = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)

#: Calls whose arguments start with ``input`` and, if they take two tensors, ``other``.
INPUT_FIRST = {*ADDITIONS, *SUBTRACTIONS, *PRODUCTS, *SMOOTH_CALLS, *KINKED_CALLS, *DROPOUTS,
               *TANHS, *AVERAGE_POOLS, F.pad}  # fmt: skip

QUOTIENTS = (operator.truediv, operator.itruediv, torch.div, "div", "div_")
#: Limits to a fixed range, which a network that follows any offset cannot have.
CLAMPS = (torch.clamp, torch.clip, "clamp", "clamp_", "clip", "clip_", F.hardtanh)

#: Names of Python's operators that differ from those of torch's operations.
_OPERATOR_NAMES = {"iadd": "add", "isub": "sub", "imul": "mul", "truediv": "div",
                   "itruediv": "div"}  # fmt: skip

_IN_PLACE_OPERATORS = (operator.iadd, operator.isub, operator.imul, operator.itruediv)


def argument(node: fx.Node, position: int, name: str, default: Any = None) -> Any:
    """Return an argument of a call, by position or by name."""
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def works_in_place(node: fx.Node, layer: nn.Module | None) -> bool:
    """Whether a node, which may call a layer, changes its first argument."""
    if layer is not None:
        return bool(getattr(layer, "inplace", False))
    if node.op not in ("call_function", "call_method"):
        return False
    name = called_name(node)
    by_name = name.endswith("_") and not name.endswith("__")
    return by_name or node.target in _IN_PLACE_OPERATORS or node.kwargs.get("inplace") is True


def called_name(node: fx.Node) -> str:
    """Return the name of the function or method that a node calls."""
    return str(getattr(node.target, "__name__", node.target))


def operation_names(node: fx.Node) -> set[str]:
    """Return the names that a call may have in a trace."""
    name = called_name(node).strip("_")
    name = _OPERATOR_NAMES.get(name, name)
    reversed_order = f"r{name}"  # as a number minus a tensor is
    return {name, reversed_order, *({"linalg_vector_norm"} if name == "normalize" else ())}


def class_name(layer: nn.Module) -> str:
    """Return the name of a layer's class, without what torch puts before parametrized ones."""
    return type(layer).__name__.removeprefix("Parametrized")


def norms_in_training(net: nn.Module) -> list[str]:
    """Return the paths of norms that are about to learn statistics of batches."""
    return [
        path
        for path, layer in net.named_modules()
        if isinstance(layer, _NormBase) and layer.training and layer.running_var is not None
    ]
