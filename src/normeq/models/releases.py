"""Versions of the shipped weights, so that old results can be repeated."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from normeq.errors import UsageError

#: Names that stand for others by now.
OTHER_NAMES = {"default-sigma": "default"}


@dataclass(frozen=True)
class Release:
    """Weights that were shipped under a name, at some time.

    Attributes
    ----------
    name, version
        The name, and a number that counts the weights it has stood for.
    date
        Since when.
    sha256
        Digest of the file.
    """

    name: str
    version: int
    date: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@lru_cache
def releases() -> tuple[Release, ...]:
    """List all weights that were ever shipped, the newest of each name last."""
    text = resources.files("normeq").joinpath("weights", "releases.csv").read_text("utf-8")
    return tuple(
        Release(row["name"], int(row["version"]), row["date"], row["sha256"])
        for row in csv.DictReader(text.splitlines())
    )


def installed_release(name: str) -> Release | None:
    """Return the release that a name stands for here; None for a name without releases.

    Examples
    --------
    >>> print(installed_release("default-color-real"))
    default-color-real@2
    """
    return {release.name: release for release in releases()}.get(name)


def installed_name(name: str) -> str:
    """Return the name of shipped weights without their version, and others as they are.

    Examples
    --------
    >>> [installed_name(name) for name in ("default-color-real@2", "default-sigma", "mine")]
    ['default-color-real', 'default', 'mine']
    """
    bare, _, version = name.partition("@")
    current = OTHER_NAMES.get(bare, bare)
    installed = installed_release(current)
    if installed is None or not version.isdecimal():
        return current if name == bare else name
    if (bare, int(version)) == (installed.name, installed.version):
        return bare
    known = [release for release in releases() if release.name == bare]
    wanted = next((release for release in known if release.version == int(version)), None)
    if wanted is None:
        raise UsageError(f"there is no {name}: there are {', '.join(map(str, known))}.")
    raise UsageError(
        f"{wanted} is not installed, only {installed}: pass the path of the file whose SHA-256 "
        f"begins with {wanted.sha256[:12]}, from the normeq of {wanted.date} or soon after."
    )
