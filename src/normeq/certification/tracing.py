"""Trace a network with torch.export.

torch.export is the basis rather than torch.fx because its graphs hold plain operations only:
functional calls, parametrizations, shared modules and in-place changes all become values with
one origin, each still marked with the module it came from.

A number that a network takes out of a tensor, by ``float(t)`` or ``t.item()``, stays a tensor with
a single element while it is traced, so that it keeps its law. What decides on such a number,
as ``if`` does, cannot be traced, and has no law here either.
"""

from __future__ import annotations

import builtins
import functools
import io
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from normeq.certification.graph_nodes import operation_name, source_line
from normeq.certification.operation import LAWS
from normeq.nn.own_source import raising_line

#: Compositions, and second names of operations.
_WRITTEN_OUT = {
    "einsum", "inner", "outer", "tensordot", "glu", "cosine_similarity", "cdist", "addcmul",
    "addcdiv", "multiply", "subtract", "divide", "negative", "absolute", "clip", "greater",
    "greater_equal", "less", "less_equal", "not_equal", "concatenate", "diff", "linalg_norm",
    "type_as",
}  # fmt: skip

#: torch.export patches modules while it traces: one network at a time.
TRACER_LOCK = threading.RLock()


class Untraceable(Exception):
    """The network cannot be traced.

    The message says at what, and `line` where in the network's source, as ``file.py:12``, if that
    is known.
    """

    def __init__(self, reason: str, line: str = "") -> None:
        super().__init__(reason)
        self.line = line


def trace(module: nn.Module, args: Sequence[Any]) -> torch.export.ExportedProgram:
    """Export a network: plain functional operations, nothing decomposed further than needed.

    Parameters
    ----------
    module
        A private copy of the network.
    args
        What it is called with.
    """
    _name_graph_modules(module)
    try:
        with TRACER_LOCK, warnings.catch_warnings(), quiet_tracer(), torch.no_grad():
            warnings.simplefilter("ignore")
            with _numbers_stay_tensors(module):
                program: torch.export.ExportedProgram = torch.export.export(
                    module, tuple(args), strict=False
                )
            if _is_written_out_further(program):
                program = program.run_decompositions(_decompositions())
    except Exception as error:  # whatever the tracer or the network's own code stumbles over
        raise Untraceable(_first_sentence(error), raising_line(error)) from error
    _refuse_free_shapes(program)
    return program


def _name_graph_modules(module: nn.Module) -> None:
    """Turn graph modules into plain ones: the tracer leaves them out of the paths it reports."""
    for part in module.modules():
        if isinstance(part, fx.GraphModule):
            kind = type(part)
            part.__class__ = type(kind.__name__, (nn.Module,), {"forward": kind.forward})


def _is_written_out_further(program: torch.export.ExportedProgram) -> bool:
    """Whether an operation of a trace has no law, changes its input, or is a composition."""
    targets = {node.target for node in program.graph.nodes if node.op == "call_function"}
    operations = [target for target in targets if isinstance(target, torch._ops.OpOverload)]
    return any(isinstance(target, torch._ops.HigherOrderOperator) for target in targets) or any(
        operation in _decompositions()
        or operation._schema.is_mutable
        or operation_name(operation) not in LAWS
        for operation in operations
    )


def _refuse_free_shapes(program: torch.export.ExportedProgram) -> None:
    """Refuse shapes that depend on the image's values, such as those of ``x[x > 0]``."""
    for node in program.graph.nodes:
        for value in tree_leaves(node.meta.get("val")):
            if isinstance(value, Tensor) and any(not isinstance(n, int) for n in value.shape):
                raise Untraceable(
                    f"the shape of {node.name} depends on the image's values", source_line(node)
                )


@contextmanager
def quiet_tracer() -> Iterator[None]:
    """Keep the tracer from logging, and printing, what is reported as an answer."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("torch.")]
    loggers = [logging.getLogger(name) for name in ("torch", *names)]
    before = [(one.disabled, one.level, one.handlers, one.propagate) for one in loggers]
    for one in loggers:
        # Those that are made meanwhile hand their messages up, to where nothing hears them.
        one.disabled, one.handlers, one.propagate = True, [logging.NullHandler()], False
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        for one, state in zip(loggers, before, strict=True):
            one.disabled, one.level, one.handlers, one.propagate = state


@contextmanager
def _numbers_stay_tensors(module: nn.Module) -> Iterator[None]:
    """Let ``float`` and ``item``, called by a network's own source, give tensors."""
    patched = [names for names in _namespaces(module) if "float" not in names]
    _Float.tracing = threading.get_ident()
    for names in patched:
        names["float"] = _Float
    try:
        with _NumbersStayTensors():
            yield
    finally:
        for names in patched:
            del names["float"]


def _namespaces(module: nn.Module) -> list[dict[str, Any]]:
    """Return the global names that a network's own source sees: of its classes, and functions."""
    found: dict[int, dict[str, Any]] = {}
    for layer in module.modules():
        sources = [sys.modules.get(kind.__module__) for kind in type(layer).__mro__]
        functions = [value for value in vars(layer).values() if isinstance(value, FunctionType)]
        for names in (
            *(vars(source) for source in sources if source is not None),
            *(function.__globals__ for function in functions),
        ):
            if not str(names.get("__name__")).startswith(("torch", "builtins")):
                found[id(names)] = names
    return list(found.values())


class _LikeFloat(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, builtins.float)


class _Float(float, metaclass=_LikeFloat):
    """``float``, except that the thread that traces gets tensors back, without their axes."""

    tracing = 0

    def __new__(cls, value: Any = 0.0) -> Any:
        if isinstance(value, Tensor) and threading.get_ident() == cls.tracing:
            return value.reshape(())
        return builtins.float(value)


class _NumbersStayTensors(TorchFunctionMode):
    """Gives tensors for numbers taken out of tensors, and takes them where torch takes numbers."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is Tensor.item and args[0].is_floating_point():
            return args[0].reshape(())
        if func in _FILLS:
            size, value = _FILLS[func](args, kwargs)
            if isinstance(value, Tensor):
                return size + value
        if func is F.pad and isinstance(kwargs.get("value"), Tensor):
            return _pad_with(*args, **kwargs)
        return func(*args, **kwargs)


def _filled(zeros: Callable[..., Tensor], name: str) -> Callable[..., tuple[Any, Any]]:
    """Return a reading of a call that fills a tensor: zeros of its shape, and the number."""

    def read(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        position = 2 if name == "new_full" else 1
        value = args[position] if len(args) > position else kwargs.get("fill_value")
        if not isinstance(value, Tensor):
            return None, value
        options = {key: option for key, option in kwargs.items() if key not in ("fill_value",)}
        return zeros(*args[:position], **options), value

    return read


_FILLS = {
    torch.full: _filled(torch.zeros, "full"),
    torch.full_like: _filled(torch.zeros_like, "full_like"),
    Tensor.new_full: _filled(Tensor.new_zeros, "new_full"),
}


def _pad_with(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = 0) -> Tensor:
    """Pad with a number taken out of a tensor."""
    inside = F.pad(torch.ones(input.shape, dtype=torch.bool), list(pad))
    for axis in range(len(pad) // 2):  # what the border holds is replaced
        dim, before, after = input.ndim - 1 - axis, pad[2 * axis], pad[2 * axis + 1]
        size = input.shape[dim]
        input = input.index_select(dim, torch.arange(-before, size + after).clamp(0, size - 1))
    return torch.where(inside, input, value)


@functools.cache
def _decompositions() -> dict[Any, Any]:
    """Operations that are written out in simpler ones, because they have no law of their own."""
    table: Any = torch.export.default_decompositions()

    def is_written_out(name: str) -> bool:
        return name in _WRITTEN_OUT or name.startswith("fft_")

    return {op: table[op] for op in list(table) if is_written_out(op._schema.name.split("::")[1])}


def _first_sentence(error: Exception) -> str:
    if isinstance(error, GuardOnDataDependentSymNode):
        return "what it does depends on the image's values"
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
