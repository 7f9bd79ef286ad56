"""Send shadows through a traced network, operation by operation."""

from __future__ import annotations

import functools
import logging
import operator
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind
from torch.utils._pytree import tree_leaves

from normeq.certification.constants import compute_constant, in_double, shape_alone
from normeq.certification.findings import Propagation, Record
from normeq.certification.graph_nodes import (
    module_path,
    operation_name,
    output_format,
    output_shapes,
    source_line,
)
from normeq.certification.judgement import (
    history_after,
    judge,
    nothing_known,
    suspect_change_of_degree,
)
from normeq.certification.operation import Operation, shadows_in
from normeq.certification.shadow import (
    ANY,
    PROPERTIES,
    History,
    Property,
    Shadow,
    kind,
    lift,
    near,
    uniform,
)

_LOG = logging.getLogger(__name__)

#: Operations that use a tensor for nothing but its shape.
_SHAPE_ONLY = {"zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones",
               "new_full", "new_empty"}  # fmt: skip

#: Random numbers, which neither gain nor offset changes.
_RANDOM = {"rand_like", "randn_like", "randint_like", "rand", "randn", "randint", "randperm"}

#: Operations that give something else each time.
_NOT_REPEATABLE = {"dropout", "normal", "bernoulli", "multinomial", "rrelu",
                   "rrelu_with_noise"}  # fmt: skip


def propagate(
    program: ExportedProgram,
    inputs: Iterable[Shadow | None],
    eps: float,
    constants: Mapping[str, Tensor],
) -> Propagation:
    """Send shadows through a traced network.

    Parameters
    ----------
    program
        The traced network.
    inputs
        The shadows of its tensor arguments; None for an argument that is not a tensor.
    eps
        Relative precision of the network's numbers.
    constants
        Its parameters and buffers in double precision, by name.
    """
    return _Propagator(program, eps, constants).run(inputs)


class _Propagator:
    """The values of a traced network's nodes, computed one after the other."""

    def __init__(
        self, program: ExportedProgram, eps: float, constants: Mapping[str, Tensor]
    ) -> None:
        self._program = program
        self._eps = eps
        self._constants = {**program.constants, **program.state_dict, **constants}
        self._values: dict[str, Any] = {}
        self._found = Propagation()

    def run(self, inputs: Iterable[Shadow | None]) -> Propagation:
        given = iter(inputs)
        for spec in self._program.graph_signature.input_specs:
            self._bind(spec, given)
        nodes = list(self._program.graph.nodes)
        last_use = {source.name: node for node in nodes for source in node.all_input_nodes}
        for order, node in enumerate(nodes):
            if node.op == "output":
                break
            if node.op == "call_function":
                self._values[node.name] = self._call(node, order)
            elif node.op == "get_attr":
                self._values[node.name] = getattr(self._program.graph_module, node.target)
            for source in node.all_input_nodes:
                if last_use[source.name] is node:  # large images need the memory
                    del self._values[source.name]
        self._found.outputs = self._outputs()
        return self._found

    def _bind(self, spec: InputSpec, given: Any) -> None:
        """Give a placeholder its value: a shadow for what the user passes, numbers for the rest."""
        name = spec.arg.name
        if spec.kind == InputKind.USER_INPUT:
            shadow = self._values[name] = next(given)
            if shadow is not None:
                record = Record(name, "input", "", (), kind(shadow), tuple(shadow.shape))
                self._found.records.append(record)
            return
        constant = self._constants[spec.target]
        self._values[name] = in_double(constant) if isinstance(constant, Tensor) else constant

    def _outputs(self) -> list[Shadow]:
        """Return the shadows of what the network returns; buffers that it changes do not count."""
        specs = self._program.graph_signature.output_specs
        names = [spec.arg.name for spec in specs if spec.kind == OutputKind.USER_OUTPUT]
        results = [self._values[name] for name in names if name in self._values]
        return [r if isinstance(r, Shadow) else lift(r) for r in results if r is not None]

    def _call(self, node: fx.Node, order: int) -> Any:
        """Compute what a node gives: constants as they are, everything else as shadows."""
        args: Any = fx.node.map_arg(node.args, lambda n: self._values[n.name])
        kwargs: Any = dict(fx.node.map_arg(node.kwargs, lambda n: self._values[n.name]))
        name = operation_name(node.target)
        sources = list(shadows_in([args, kwargs]))
        if node.target is operator.getitem:
            return args[0] if isinstance(args[0], Shadow) else args[0][args[1]]
        if name.startswith("_assert"):
            return None
        if name in _RANDOM or (name in ("normal", "bernoulli") and not sources):
            return uniform(output_shapes(node)[0], 0.0, 0.0, seed=order)
        if name in _SHAPE_ONLY and len(sources) == 1 and args[0] is sources[0]:
            args, kwargs = shape_alone(node, args, kwargs)
            sources = []
        if not sources:
            try:
                return compute_constant(node.target, args, kwargs)
            except Exception as error:  # what cannot be computed stays unknown
                _LOG.debug("%s cannot be computed: %s", name, error)
        op = self._operation(node, name, order)
        if name not in _NOT_REPEATABLE:
            op.seed = functools.cache(lambda: _fingerprint(name, args, kwargs))
        result = judge(op, args, kwargs) if sources else nothing_known(op, PROPERTIES)
        return self._finish(node, op, sources, result)

    def _operation(self, node: fx.Node, name: str, order: int) -> Operation:
        dtype = output_format(node)
        eps = self._eps
        if dtype.is_floating_point:
            self._found.formats.add(dtype)
            eps = max(eps, torch.finfo(dtype).eps)
        return Operation(
            name,
            module_path(node),
            node.target,  # type: ignore[arg-type]
            output_shapes(node),
            dtype,
            eps,
            order,
            source_line(node),
            seed=lambda: order,
        )

    def _finish(self, node: fx.Node, op: Operation, sources: Sequence[Shadow], result: Any) -> Any:
        """Give the outputs their histories, and record the operation."""
        single = isinstance(result, Shadow)
        results = [result] if single else result
        suspect_change_of_degree(op, sources, results[0])
        histories = {which: history_after(op, sources, which) for which in PROPERTIES}
        outputs = [self._settle(shadow, histories) for shadow in results]
        if op.name.startswith("conv") or op.name == "linear":
            self._found.still[op.path] = _still_channels(op, sources[0])
        inputs = [n.name for n in node.all_input_nodes if any(shadows_in(self._values[n.name]))]
        first, shape = outputs[0], tuple(outputs[0].shape)
        self._found.records.append(
            Record(node.name, op.name, op.path, tuple(inputs), kind(first), shape, op.line)
        )
        return first if single else outputs

    def _settle(self, shadow: Shadow, histories: dict[Property, History]) -> Shadow:
        """Take coefficients that are off by rounding for exact; clear suspects if all is well.

        Rounding is judged where it arises, so that small errors do not add up to a large tolerance.
        """
        scale, shift = histories["scale"], histories["shift"]
        if bool(((shadow.d == 1) | (shadow.d == ANY)).all()):
            scale = History(scale.blame)
        follows, still = near(shadow.c, 1.0, shadow.slack), ~shadow.moves
        if bool((follows | still).all()):
            shift = History(shift.blame)
        c = torch.where(follows, 1.0, torch.where(still, 0.0, shadow.c))
        if shadow.c.numel():
            self._found.deviation += float((c - shadow.c).abs().max())
        slack = torch.where(follows | still, 0.0, shadow.slack)
        v = torch.where(shadow.v.isfinite(), shadow.v, 1.0)
        return replace(shadow, c=c, v=v, slack=slack, scale=scale, shift=shift)


def _still_channels(op: Operation, features: Shadow) -> Tensor:
    """Return which channels of a linear layer's input do not move with the offset."""
    # Ratios come from norms and gates, which will follow the offset once converted.
    follows = features.moves | (features.d == 0)
    channels = follows.ndim - 1 if op.name == "linear" else 1
    return ~follows.amax([axis for axis in range(follows.ndim) if axis != channels])


def _fingerprint(name: str, *values: Any) -> int:
    """Return a number that tells an operation and its arguments from all others."""
    text = [name]
    for value in tree_leaves(values):
        if isinstance(value, Shadow | Tensor):
            plane = value.v if isinstance(value, Shadow) else value
            plane = torch.view_as_real(plane) if plane.is_complex() else plane
            flat = plane.double().flatten()
            weights = torch.arange(1.0, flat.numel() + 1, dtype=torch.float64).sin()
            text.append(f"{tuple(plane.shape)} {float(flat @ weights)!r}")
        else:
            text.append(repr(value))
    return zlib.crc32(" ".join(text).encode())
