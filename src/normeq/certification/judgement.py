"""Judge one operation: apply its law, or say what is not known about it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from normeq.certification import rules  # noqa: F401 (registers the laws)
from normeq.certification.operation import Operation, find_law, planes_like, shadows_in
from normeq.certification.rules.movement import whole_numbers
from normeq.certification.shadow import ANY, PROPERTIES, History, Property, Shadow, distinct

_LOG = logging.getLogger(__name__)

ONE_SCALE = "one factor that scales with the image, the others ratios (normeq.nn.Enclosed)"

#: Operations that give whole numbers for whole numbers only, without rounding.
_EXACT = {"add", "sub", "rsub", "mul", "neg"}


def judge(op: Operation, args: Any, kwargs: Any) -> Any:
    """Apply the operation's law; without one, only what no gain or offset reaches is known."""
    known = find_law(op.name, args, kwargs)
    if known is not None:
        try:
            return _held_to_its_outputs(op, known(op, *args, **kwargs))
        except Exception:  # a way of calling the operation that its law does not foresee
            _LOG.warning(
                "the law of %s failed, so nothing is claimed about it: please report this.",
                op.name,
                exc_info=True,
            )
            op.blamed.clear()
            op.suspected.clear()
    sources = list(shadows_in([args, kwargs]))
    reached = {
        "scale": any(bool(s.scales.any()) for s in sources),
        "shift": any(bool(s.moves.any()) for s in sources),
    }
    return nothing_known(op, [which for which in PROPERTIES if reached[which]])


def _held_to_its_outputs(op: Operation, result: Any) -> Any:
    """Bring what a law says to the shapes and the number format that come out of the operation."""
    single = isinstance(result, Shadow)
    outputs = [result] if single else list(result)
    for index, (shadow, shape) in enumerate(zip(outputs, op.shapes, strict=False)):
        if tuple(shadow.shape) != tuple(shape):
            outputs[index] = planes_like(shadow, shape)
    exact = op.dtype.is_floating_point or op.dtype.is_complex or op.name in _EXACT
    if not exact:
        outputs[0] = whole_numbers(op, outputs[0])
    return outputs[0] if single else outputs


def nothing_known(op: Operation, lost: Sequence[Property]) -> Any:
    """Report that an operation may break these properties, and what is left of its outputs."""
    for which in lost:
        op.blame(
            which,
            f"nothing is known about {op.name} called in this way.",
            "a supported operation in its place, normeq.certification.register_law, "
            "or normeq.normalized around the network",
            unknown=True,
        )
    # What follows is judged as if nothing came out of it that could break a law.
    degree = ANY if "scale" in lost else 0.0
    outputs = [op.output(degree, 0.0, index) for index in range(len(op.shapes))]
    return outputs if len(outputs) > 1 else outputs[0]


def suspect_change_of_degree(op: Operation, sources: Sequence[Shadow], output: Shadow) -> None:
    """Remember an operation that turns features that scale with the image into something else."""
    if not op.dtype.is_floating_point or not any(bool((s.d == 1).any()) for s in sources):
        return
    known = any(culprit.property == "scale" for culprit in op.suspected) or any(
        culprit.property == "scale" for culprit, _ in op.blamed
    )
    other = [degree for degree in distinct(output.d) if degree != 1]
    if other and not known:
        op.suspect("scale", f"its output has degree {other[0]:g}.", ONE_SCALE)


def history_after(op: Operation, sources: Sequence[Shadow], which: Property) -> History:
    """Join the histories of an operation's inputs, and add what happened in it."""
    past = History()
    for source in sources:
        past |= source.history(which)
    blamed = [(culprit, shared) for culprit, shared in op.blamed if culprit.property == which]
    guilty = {culprit for culprit, _ in blamed}
    if any(shared for _, shared in blamed):
        guilty |= past.suspects
    suspects = past.suspects | {s for s in op.suspected if s.property == which}
    return History(past.blame | guilty, suspects - guilty)
