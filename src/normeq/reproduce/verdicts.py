"""What a measurement says about a claim of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import stdev


class Verdict(StrEnum):
    """Whether a claim holds here."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not decidable at this scale"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper beside what was measured.

    Attributes
    ----------
    text
        What is claimed.
    paper
        The paper's figure.
    ours
        Our figure, in words or numbers.
    verdict
        What follows.
    note
        Why ours differs, or what the verdict rests on.
    """

    text: str
    paper: str
    ours: str
    verdict: Verdict
    note: str = ""


def spread_of(values: Sequence[float]) -> float:
    """Return the standard deviation over seeds: infinite for one seed, from which nothing follows.

    Examples
    --------
    >>> spread_of([30.0]), round(spread_of([30.0, 30.1, 30.2]), 6)
    (inf, 0.1)
    """
    return stdev(values) if len(values) > 1 else math.inf


def is_below(value: float, limit: float, spread: float, rise: float = 0.0) -> Verdict:
    """Judge the claim ``value < limit``.

    Parameters
    ----------
    value, limit
        What was measured, and what it should stay below.
    spread
        Standard deviation of the value over seeds.
    rise
        How much it still changes with longer training.

    Examples
    --------
    >>> is_below(0.02, 0.05, spread=0.01)
    <Verdict.HOLDS: 'holds'>
    >>> is_below(0.04, 0.05, spread=0.01)
    <Verdict.OPEN: 'not decidable at this scale'>
    >>> is_below(0.2, 0.05, spread=0.01)
    <Verdict.FAILS: 'does not hold'>
    """
    margin = limit - value
    if not math.isfinite(margin) or abs(margin) <= max(2 * spread, rise):
        return Verdict.OPEN
    return Verdict.HOLDS if margin > 0 else Verdict.FAILS


def is_above(value: float, limit: float, spread: float, rise: float = 0.0) -> Verdict:
    """Judge the claim ``value > limit``; see `is_below`.

    Examples
    --------
    >>> is_above(3.0, 1.0, spread=0.1)
    <Verdict.HOLDS: 'holds'>
    """
    return is_below(-value, -limit, spread, rise)


def are_equal(gap: float, limit: float, spread: float, rise: float) -> Verdict:
    """Judge the claim that trained networks are within a limit of each other.

    Nothing follows while training still brings more than that.

    Parameters
    ----------
    gap, limit
        Their distance, and what it should stay below.
    spread, rise
        See `is_below`.

    Examples
    --------
    >>> are_equal(0.9, 0.05, spread=0.01, rise=0.02)
    <Verdict.FAILS: 'does not hold'>
    >>> are_equal(0.9, 0.05, spread=0.01, rise=0.1)
    <Verdict.OPEN: 'not decidable at this scale'>
    """
    return Verdict.OPEN if rise > limit else is_below(gap, limit, spread, rise)


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Judge a claim that consists of several: all must hold, and one that fails is enough.

    Examples
    --------
    >>> together([Verdict.HOLDS, Verdict.OPEN])
    <Verdict.OPEN: 'not decidable at this scale'>
    """
    for found in (Verdict.FAILS, Verdict.OPEN):
        if found in verdicts:
            return found
    return Verdict.HOLDS
