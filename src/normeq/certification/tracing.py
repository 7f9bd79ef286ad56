"""Trace a network with torch.export.

torch.export is the basis rather than torch.fx because its graphs hold plain operations only:
functional calls, parametrizations, shared modules and in-place changes all become values with
one origin, each still marked with the module it came from. What it refuses (control flow that
depends on the image's values) has no law here either.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

#: Compositions, and second names of operations.
_WRITTEN_OUT = {
    "einsum", "inner", "outer", "tensordot", "glu", "cosine_similarity", "cdist", "addcmul",
    "multiply", "subtract", "divide", "negative", "absolute", "clip", "greater", "greater_equal",
    "less", "less_equal", "not_equal", "concatenate", "diff", "linalg_norm", "type_as",
}  # fmt: skip


class Untraceable(Exception):
    """The network cannot be traced; the message says at what."""


def trace(module: nn.Module, args: Sequence[Any]) -> torch.export.ExportedProgram:
    """Export a network: plain functional operations, nothing decomposed further than needed."""
    try:
        with warnings.catch_warnings(), _quiet(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.export.export(module, tuple(args), strict=False)
            functional: torch.export.ExportedProgram = program.run_decompositions(_decompositions())
    except Exception as error:  # whatever the tracer or the network's own code stumbles over
        raise Untraceable(_first_sentence(error)) from error
    _refuse_free_shapes(functional)
    return functional


def _refuse_free_shapes(program: torch.export.ExportedProgram) -> None:
    """Refuse shapes that depend on the image's values, such as those of ``x[x > 0]``."""
    for node in program.graph.nodes:
        for value in tree_leaves(node.meta.get("val")):
            if isinstance(value, Tensor) and any(not isinstance(n, int) for n in value.shape):
                raise Untraceable(f"the shape of {node.name} depends on the image's values")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the tracer from logging what is reported as an answer."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


@functools.cache
def _decompositions() -> dict[Any, Any]:
    """Operations that are written out in simpler ones, because they have no law of their own."""
    table: Any = torch.export.default_decompositions()
    return {op: table[op] for op in list(table) if op._schema.name.split("::")[1] in _WRITTEN_OUT}


def _first_sentence(error: Exception) -> str:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
