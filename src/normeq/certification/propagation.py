"""Send shadows through a traced network, operation by operation."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.export.graph_signature import InputKind

from normeq.certification.operation import Operation, find_law, planes_like, shadows_in

# Importing these modules registers the laws.
from normeq.certification.rules import elementwise, linear, movement, normalization
from normeq.certification.shadow import (
    ANY,
    Culprit,
    History,
    Property,
    Shadow,
    debts,
    kind,
    lift,
    near,
    uniform,
)

_REGISTERED = (linear, movement, elementwise, normalization)

PROPERTIES: tuple[Property, ...] = ("scale", "shift")

#: Operations that use a tensor for nothing but its shape.
_SHAPE_ONLY = {"zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones",
               "new_full", "new_empty"}  # fmt: skip


#: Random numbers, which neither gain nor offset changes.
_RANDOM = {"rand_like", "randn_like", "randint_like", "rand", "randn", "randint",
           "randperm"}  # fmt: skip


@dataclass(frozen=True)
class Record:
    """One operation of the traced network and what came out of it.

    Attributes
    ----------
    name, operation, path
        Its name in the graph, the operation, and the module it belongs to.
    inputs
        Names of the records it depends on.
    kind
        E, H, I, or what else its output is.
    shape
        The shape of its output.
    """

    name: str
    operation: str
    path: str
    inputs: tuple[str, ...]
    kind: str
    shape: tuple[int, ...]


@dataclass
class Propagation:
    """Shadows of a network's outputs, and the record of how they came about."""

    outputs: list[Shadow]
    records: list[Record]
    shadows: dict[str, Shadow]


def run(
    program: torch.export.ExportedProgram, inputs: Iterable[Shadow | None], eps: float
) -> Propagation:
    """Send shadows through a traced network; `inputs` are those of its tensor arguments."""
    values: dict[str, Any] = {}
    records: list[Record] = []
    _bind_inputs(program, inputs, values, records)
    outputs: list[Shadow] = []
    for order, node in enumerate(program.graph.nodes):
        if node.op == "call_function":
            values[node.name] = _call(node, values, records, eps, order)
        elif node.op == "get_attr":
            values[node.name] = getattr(program.graph_module, node.target)
        elif node.op == "output":
            results = torch.fx.node.map_arg(node.args[0], lambda n: values[n.name])
            user = {spec.arg.name for spec in program.graph_signature.output_specs
                    if spec.kind.name == "USER_OUTPUT" and hasattr(spec.arg, "name")}  # fmt: skip
            for result, source in zip(results, node.args[0], strict=True):
                if getattr(source, "name", None) in user:
                    outputs.append(result if isinstance(result, Shadow) else lift(result))
    return Propagation(outputs, records, {k: v for k, v in values.items() if isinstance(v, Shadow)})


def _bind_inputs(
    program: torch.export.ExportedProgram,
    inputs: Iterable[Shadow | None],
    values: dict[str, Any],
    records: list[Record],
) -> None:
    """Give placeholders their values: shadows for what the user passes, numbers for the rest."""
    given = iter(inputs)
    for spec in program.graph_signature.input_specs:
        name = spec.arg.name
        if spec.kind == InputKind.USER_INPUT:
            shadow = next(given) if hasattr(spec.arg, "name") else None
            values[name] = shadow
            if shadow is not None:
                records.append(Record(name, "input", "", (), kind(shadow), tuple(shadow.shape)))
        elif spec.kind == InputKind.PARAMETER or (
            spec.kind == InputKind.BUFFER and spec.target in program.state_dict
        ):
            values[name] = _known(program.state_dict[spec.target])
        else:
            constant = program.constants[spec.target]
            values[name] = _known(constant) if isinstance(constant, Tensor) else constant


def _known(tensor: Tensor) -> Tensor:
    """Return a constant in double precision, in which kernel sums are exact."""
    tensor = tensor.detach().cpu()
    return tensor.double() if tensor.is_floating_point() else tensor


def _call(
    node: torch.fx.Node, values: dict[str, Any], records: list[Record], eps: float, order: int
) -> Any:
    target: Any = node.target
    args: Any = torch.fx.node.map_arg(node.args, lambda n: values[n.name])
    kwargs = dict(torch.fx.node.map_arg(node.kwargs, lambda n: values[n.name]))
    if target is operator.getitem:
        return args[0] if isinstance(args[0], Shadow) else args[0][args[1]]
    operation = _name(target)
    sources = list(shadows_in([args, kwargs]))
    if operation.startswith("_assert"):
        return None
    if operation == "sym_float" and sources:  # a number taken out of a tensor
        return sources[0]
    if operation in _RANDOM or (operation in ("normal", "bernoulli") and not sources):
        return uniform(_meta(node)[0][0], 0.0, 0.0)
    shapes, dtype = _meta(node)
    if operation in _SHAPE_ONLY and len(sources) == 1 and args[0] is sources[0]:
        args, sources = (torch.empty(args[0].shape), *args[1:]), []
        kwargs |= {"dtype": dtype, "device": torch.device("cpu")}
    if not sources:
        with suppress(Exception):  # what cannot be computed stays unknown
            return _constant(target, args, kwargs)
    if dtype.is_floating_point:
        eps = max(eps, torch.finfo(dtype).eps)
    step = Operation(operation, _path(node), target, shapes, dtype, eps, order)
    result = _judge(step, args, kwargs) if sources else _unknown(step, PROPERTIES)
    result = _remember(step, sources, result)
    first = result if isinstance(result, Shadow) else result[0]
    inputs = [n.name for n in node.all_input_nodes if any(shadows_in(values[n.name]))]
    records.append(
        Record(node.name, operation, step.path, tuple(inputs), kind(first), tuple(first.shape))
    )
    return result


def _judge(step: Operation, args: Any, kwargs: Any) -> Any:
    """Apply the operation's law; without one, only what no gain or offset reaches is known."""
    known = find_law(step.operation, args, kwargs)
    if known not in (movement.move, linear.built_in):
        step.blamed += [(debt, True) for debt in debts(shadows_in([args, kwargs]))]
    if known is not None:
        try:
            return _held_to_its_outputs(step, known(step, *args, **kwargs))
        except Exception:  # a way of calling the operation that its law does not foresee
            step.blamed.clear()
            step.suspected.clear()
    sources = list(shadows_in([args, kwargs]))
    scales = any(bool(((s.d != 0) & (s.d != ANY)).any()) for s in sources)
    moves = any(bool(s.moves.any()) for s in sources)
    matters: dict[Property, bool] = {"scale": scales, "shift": moves}
    return _unknown(step, [which for which in PROPERTIES if matters[which]])


def _held_to_its_outputs(step: Operation, result: Any) -> Any:
    """Bring what a law says to the shapes and the number format that come out of the operation."""
    single = isinstance(result, Shadow)
    outputs = [result] if single else list(result)
    for index, (shadow, shape) in enumerate(zip(outputs, step.shapes, strict=False)):
        if tuple(shadow.shape) != tuple(shape):
            outputs[index] = planes_like(shadow, shape)
    if not step.dtype.is_floating_point:
        outputs[0] = movement.whole_numbers(step, outputs[0])
    return outputs[0] if single else outputs


def _unknown(step: Operation, lost: Sequence[Property]) -> Any:
    """Report that an operation may break these properties, and what is left of its outputs."""
    for which in lost:
        step.blame(
            which,
            f"nothing is known about {step.operation} called in this way.",
            "a supported operation in its place, or normeq.normalized around the network",
            unknown=True,
        )
    # What follows is judged as if nothing came out of it that could break a law.
    degree = ANY if "scale" in lost else 0.0
    outputs = [step.output(degree, 0.0, index) for index in range(len(step.shapes))]
    return outputs if len(outputs) > 1 else outputs[0]


def _remember(step: Operation, sources: Sequence[Shadow], result: Any) -> Any:
    """Give the outputs the histories of the inputs and what happened in this step."""
    histories: dict[Property, History] = {}
    for which in PROPERTIES:
        past = History()
        for source in sources:
            past |= source.history(which)
        new = {culprit for culprit, _ in step.blamed if culprit.property == which}
        if any(shared for culprit, shared in step.blamed if culprit.property == which):
            new |= past.suspects
        suspects = past.suspects | {s for s in step.suspected if s.property == which}
        histories[which] = History(past.blame | new, suspects - new)
    single = isinstance(result, Shadow)
    finished = [_settle(shadow, histories) for shadow in ([result] if single else result)]
    return finished[0] if single else finished


def _settle(shadow: Shadow, histories: dict[Property, History]) -> Shadow:
    """Take coefficients that are off by rounding for exact, and clear suspects if all is well.

    Rounding is judged where it arises, so that it does not add up to a licence for the next.
    """
    scale, shift = histories["scale"], histories["shift"]
    if bool(((shadow.d == 1) | (shadow.d == ANY)).all()):
        scale = History(scale.blame)
    follows, still = near(shadow.c, 1.0, shadow.slack), ~shadow.moves
    if bool((follows | still).all()):
        shift = History(shift.blame)
    c = torch.where(follows, 1.0, torch.where(still, 0.0, shadow.c))
    slack = torch.where(follows | still, 0.0, shadow.slack)
    return replace(shadow, c=c, slack=slack, scale=scale, shift=shift)


def _constant(target: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute what does not depend on the image."""
    kwargs = dict(kwargs)
    if "dtype" in kwargs and kwargs["dtype"] is not None and kwargs["dtype"].is_floating_point:
        kwargs["dtype"] = torch.float64
    if "device" in kwargs:
        kwargs["device"] = torch.device("cpu")
    result = target(*args, **kwargs)
    if isinstance(result, Tensor):
        return _known(result)
    if isinstance(result, list | tuple):
        return [_known(part) if isinstance(part, Tensor) else part for part in result]
    return result


def _meta(node: torch.fx.Node) -> tuple[list[tuple[int, ...]], torch.dtype]:
    """Return the shapes of a node's outputs and the number format of the first."""
    value = node.meta.get("val")
    parts = list(value) if isinstance(value, list | tuple) else [value]
    tensors = [part for part in parts if isinstance(part, Tensor)]
    if not tensors:  # a number taken out of a tensor
        return [()], torch.float64
    return [tuple(part.shape) for part in tensors], tensors[0].dtype


def _name(target: Any) -> str:
    packet = getattr(target, "overloadpacket", None)
    name: str = getattr(packet or target, "__name__", str(target))
    namespace = getattr(target, "namespace", "aten")
    if namespace not in ("aten", "prims"):  # somebody else's, whatever it is called
        return f"{namespace}::{name}"
    return next((plain for plain in ("batch_norm", "dropout") if plain in name), name)


def _path(node: torch.fx.Node) -> str:
    """Return the innermost module that an operation belongs to."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values()]
    return paths[-1] if paths else ""


def culprits_of(outputs: Iterable[Shadow], which: Property) -> list[Culprit]:
    """List what reached the outputs, in the network's order."""
    found: set[Culprit] = set()
    for output in outputs:
        found |= output.history(which).blame
        found |= {culprit for culprit in debts([output]) if culprit.property == which}
    return sorted(found, key=lambda culprit: (culprit.order, culprit.reason))
