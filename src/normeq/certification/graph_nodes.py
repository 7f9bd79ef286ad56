"""What a node of a traced network says of itself: its operation, its place, its outputs."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor, fx

from normeq.nn.own_source import innermost


def _tensors(node: fx.Node) -> list[Tensor]:
    value = node.meta.get("val")
    parts = list(value) if isinstance(value, list | tuple) else [value]
    return [part for part in parts if isinstance(part, Tensor)]


def output_shapes(node: fx.Node) -> list[tuple[int, ...]]:
    """Return the shapes of a node's outputs; a number taken out of a tensor has none."""
    return [tuple(part.shape) for part in _tensors(node)] or [()]


def output_format(node: fx.Node) -> torch.dtype:
    """Return the number format of a node's first output."""
    return next((part.dtype for part in _tensors(node)), torch.float64)


def operation_name(target: Any) -> str:
    """Return the name under which the law of an operation is registered."""
    packet = getattr(target, "overloadpacket", None)
    name: str = getattr(packet or target, "__name__", str(target))
    namespace = getattr(target, "namespace", "aten")
    if namespace not in ("aten", "prims"):  # someone else's operation, whatever it is called
        return f"{namespace}::{name}"
    return next((plain for plain in ("batch_norm", "dropout") if plain in name), name)


def module_path(node: fx.Node) -> str:
    """Return the innermost module that an operation belongs to."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values()]
    return paths[-1] if paths else ""


def source_line(node: fx.Node) -> str:
    """Return the innermost line of the network's own source that calls an operation."""
    return innermost(re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or ""))
