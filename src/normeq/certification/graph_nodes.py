"""What a node of a traced network says of itself: its operation, its place, its outputs."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

#: The packages of torch and of normeq, which are not a network's own source.
_NOT_OWN = (Path(torch.__file__).parent, Path(__file__).parents[1])


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
    return _innermost(re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or ""))


def raising_line(error: BaseException) -> str:
    """Return the innermost line of the network's own source through which an error came."""
    frames = traceback.extract_tb(error.__traceback__)
    return _innermost([(frame.filename, str(frame.lineno)) for frame in frames])


def _innermost(places: Sequence[tuple[str, str]]) -> str:
    """Return the last of some places that a user wrote: neither torch's nor ours nor generated."""
    own = [
        (Path(file).name, line)
        for file, line in places
        if not file.startswith("<") and not any(Path(file).is_relative_to(p) for p in _NOT_OWN)
    ]
    return ":".join(own[-1]) if own else ""
