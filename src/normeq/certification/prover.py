"""Prove the equivariance of a network, or name the operations that break it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from normeq.certification.certificate import Certificate, Status
from normeq.certification.examples import Example, arguments, refuse_unfit, refuse_unready
from normeq.certification.findings import Propagation, Record
from normeq.certification.measurement import (
    Counterexample,
    Range,
    find_range,
    measure,
    rounding_bound,
    tolerated,
)
from normeq.certification.opaque import with_any_inner
from normeq.certification.propagation import propagate
from normeq.certification.questions import InputLaw, Question, Variation, variations
from normeq.certification.shadow import PROPERTIES, Culprit, Property
from normeq.certification.subject import Subject
from normeq.certification.tracing import Untraceable, trace
from normeq.certification.ways import Way, branches, way_of
from normeq.errors import reason

_LOG = logging.getLogger(__name__)


def certify(
    module: nn.Module,
    example: Example | None = None,
    *,
    inputs: Sequence[InputLaw] | None = None,
    question: Question = "equivariant",
) -> Certificate:
    """Prove ``f(λ·y + μ, λ·σ) = λ·f(y, σ) + μ``, or name the operations that break it.

    Scale degree and shift coefficient of every element of every tensor are propagated through
    the operations of the network, as traced by torch.export. What is called proven holds for
    every image of the sizes that the certificate states, every gain and every offset in its
    range, up to rounding, which its `bound` states. Gains and offsets are measured, too: what does
    not agree with the proof is not called proven, and what is called broken comes with a
    counterexample.

    Parameters
    ----------
    module
        Any network. Its mode matters: batch norm and dropout act differently in training.
    example
        An image batch to trace with, or the network's arguments. Only shapes matter, not values.
        By default small images with as many channels as the first layer takes, at sizes that
        meet every branch of the forward pass.
    inputs
        What each argument is: ``"image"``, ``"level"`` (scales with the image, as a noise level
        does), ``"fixed"`` (a mask, coordinates), or ``"own-image"`` (an image with a gain and
        offset of its own, which the output must ignore). By default an image, then noise levels.
    question
        ``"equivariant"``, ``"invariant"`` (classifiers: ``f(λ·y + μ) = f(y)``), or
        ``"per-channel"`` (each channel follows a gain and offset of its own).

    Examples
    --------
    >>> from torch import nn
    >>> from normeq.nn import AffineConv2d, SortPool
    >>> net = nn.Sequential(AffineConv2d(1, 4, 3, padding=1), SortPool(), AffineConv2d(4, 1, 1))
    >>> certificate = certify(net)
    >>> certificate.norm
    <Status.PROVEN: 'proven'>
    >>> net[1] = nn.ReLU()
    >>> [(c.path, c.operation, c.property) for c in certify(net).culprits]
    [('1', 'relu', 'shift')]
    """
    refuse_unready(module)
    subject = Subject.of(module)
    args = arguments(subject.own, example)
    refuse_unfit(subject.own, args)
    asked = variations(args, inputs, question)
    findings = _Findings()
    ways = branches(subject.own, args) if example is None else [way_of(subject.own, args)]
    for way in ways:
        findings.sizes += way.sizes
        for variation in asked:
            findings.add(subject, way, variation)
    return findings.certificate()


def send(module: nn.Module, args: Sequence[Any]) -> Propagation | None:
    """Send the laws of the arguments through a network; None if it cannot be traced."""
    try:
        return _propagate(Subject.of(module), args, variations(args, None, "equivariant")[0])
    except Untraceable:
        return None


def culprits_of(
    module: nn.Module, args: Sequence[Any], properties: Sequence[Property]
) -> list[Culprit]:
    """List what the laws blame for breaking some properties; nothing if it cannot be traced."""
    subject = Subject.of(module)
    variation = variations(args, None, "equivariant")[0]
    try:
        outcome = _propagate(subject, args, variation)
    except Untraceable:
        return []
    return [c for which in properties for c in _culprits(outcome, variation, which)]


def _propagate(subject: Subject, args: Sequence[Any], variation: Variation) -> Propagation:
    program = _trace(subject.own, args)
    eps = torch.finfo(args[0].dtype).eps
    try:
        return propagate(program, variation.shadows(args), eps, subject.constants())
    except Exception as error:  # sparse tensors and other kinds of values that shadows lack
        _LOG.info("the operations cannot be followed", exc_info=True)
        raise Untraceable(f"{type(error).__name__}: {reason(error)}") from error


def _trace(module: nn.Module, args: Sequence[Any]) -> ExportedProgram:
    """Trace a network, or if it cannot be traced, the wrapper around it."""
    try:
        return trace(module, args)
    except Untraceable:
        wrapper = with_any_inner(module, args)
        if wrapper is None:
            raise
        return trace(wrapper, args)


@dataclass
class _Findings:
    """What has been found of a network so far, over all branches and changes."""

    culprits: list[Culprit] = field(default_factory=list)
    measured: dict[Property, float] = field(default_factory=lambda: dict.fromkeys(PROPERTIES, 0.0))
    counterexamples: dict[Property, Counterexample] = field(default_factory=dict)
    statuses: dict[Property, Status] = field(
        default_factory=lambda: dict.fromkeys(PROPERTIES, Status.PROVEN)
    )
    records: tuple[Record, ...] = ()
    bound: float = 0.0
    range: Range | None = None
    sizes: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, subject: Subject, way: Way, variation: Variation) -> None:
        """Judge one variation of the inputs on one way through the network."""
        worst, precision = measure(subject, way.small, variation)
        outcome: Propagation | None = None
        try:
            outcome = _propagate(subject, way.args, variation)
            found = {which: _culprits(outcome, variation, which) for which in PROPERTIES}
        except Untraceable as error:
            found = {which: [_untraceable(which, error)] for which in PROPERTIES}
        deviation = 0.0 if outcome is None else outcome.deviation
        allowed = tolerated(deviation, precision)
        for which in PROPERTIES:
            self._judge(which, found[which], worst[which], allowed)
        if outcome is not None:
            self.records = self.records or tuple(outcome.records)
            proven = {which for which in PROPERTIES if self.statuses[which] is Status.PROVEN}
            if proven and self.range is None:
                self.range = find_range(subject, way.small, variation, outcome.formats, proven)
            if self.statuses["shift"] is Status.PROVEN:
                self.bound = max(self.bound, rounding_bound(subject, way.small, variation))

    def _judge(
        self, which: Property, found: list[Culprit], worst: Counterexample, allowed: float
    ) -> None:
        """Compare what the laws say of a property with what was measured."""
        self.measured[which] = max(self.measured[which], worst.error)
        fails = not worst.error <= allowed
        if fails and not found:
            found = [_otherwise(which, worst.error)]
        certain = fails and any(not culprit.unknown for culprit in found)
        if certain and which not in self.counterexamples:
            self.counterexamples[which] = worst
        if certain:
            self.statuses[which] = Status.BROKEN
        elif found and self.statuses[which] is Status.PROVEN:
            self.statuses[which] = Status.UNKNOWN
        self.culprits += found

    def certificate(self) -> Certificate:
        """Return what has been found."""
        shift = self.statuses["shift"]
        return Certificate(
            self.statuses["scale"],
            shift,
            _once_each(self.culprits),
            self.bound if shift is Status.PROVEN else float("inf"),
            self.records,
            dict(self.measured),
            dict(self.counterexamples),
            self.range if Status.PROVEN in self.statuses.values() else None,
            tuple(dict.fromkeys(self.sizes)),
        )


def _culprits(outcome: Propagation, variation: Variation, which: Property) -> list[Culprit]:
    """List what breaks a property on the way, and outputs that are lawful but not what is asked."""
    blamed = outcome.culprits(which)
    found: set[Culprit] = set()
    for output in outcome.outputs:
        text = variation.violation(output, which)
        if text:
            end = Culprit("", "output", which, text, "see the operations before it", order=10**9)
            found |= output.history(which).suspects or ({end} if not blamed else set())
    return [*blamed, *sorted(found, key=lambda culprit: (culprit.order, culprit.reason))]


def _once_each(culprits: Iterable[Culprit]) -> tuple[Culprit, ...]:
    """Order culprits, each once for a module that is used several times."""
    seen: dict[tuple[str, ...], Culprit] = {}
    for culprit in sorted(culprits, key=lambda culprit: (culprit.order, culprit.reason)):
        in_words = re.sub(r"[-+.\de]*\d", "#", culprit.reason)
        key = (culprit.path, culprit.operation, culprit.property, in_words)
        seen.setdefault(key, culprit)
    return tuple(seen.values())


def _otherwise(which: Property, error: float) -> Culprit:
    """Return the culprit for a measurement that does not agree with the proof."""
    return Culprit(
        "",
        "measurement",
        which,
        f"the measured error is {error:.2g}, more than rounding explains.",
        "compute in double precision, or normeq.normalized around the network",
        unknown=True,
    )


def _untraceable(which: Property, error: Untraceable) -> Culprit:
    return Culprit(
        "",
        "torch.export",
        which,
        f"the network cannot be traced ({error}).",
        "no control flow that depends on the image's values, "
        "or normeq.normalized around the network",
        unknown=True,
        line=error.line,
    )
