"""Where an experiment finds its images and networks, and where its results go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normeq._support.tables import save_figure, text_table, write_csv
from normeq.errors import UsageError
from normeq.images.folder import Folder, read_folder
from normeq.reproduce.scale import Scale
from normeq.reproduce.verdicts import Claim, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from normeq.reproduce.trainable import Trainable


class Unavailable(UsageError):
    """An experiment that cannot run because a set of images or a folder is missing."""


@dataclass
class Workspace:
    """What the experiments of one command share.

    Attributes
    ----------
    out
        Folder for tables and figures.
    scale
        How large networks and budgets are.
    data
        Folder with the sets of images, each a folder of its usual name.
    runs
        Folder that keeps trained networks.
    weights
        Folder with weights that replace training, named like the recipes.
    say
        Prints a line.
    plan
        All networks of the command, to tell how much is left.
    """

    out: Path
    scale: Scale = Scale.SMALL
    data: Path | None = None
    runs: Path | None = None
    weights: Path | None = None
    say: Callable[[str], None] = print
    plan: Sequence[Trainable] = ()
    _hours: dict[str, float] = field(default_factory=dict)

    def folder(self, name: str, purpose: str) -> Path:
        """Return the folder of a set; `Unavailable` says what it is needed for.

        Parameters
        ----------
        name
            As the set is usually called; alternatives are separated by a bar.
        purpose
            What needs it, for the message.
        """
        if self.data is None:
            raise Unavailable(f"{purpose} needs images: give --data, a folder with {name}.")
        for choice in name.split("|"):
            if (self.data / choice).is_dir():
                return self.data / choice
        missing = " or ".join(name.split("|"))
        raise Unavailable(f"{purpose} needs the set {missing}, which is not in '{self.data}'.")

    def images(self, name: str, purpose: str, channels: int = 1) -> Folder:
        """Read a set of images."""
        return read_folder(self.folder(name, purpose), channels)

    def available(self, names: Sequence[str], purpose: str) -> dict[str, Folder]:
        """Read the sets that are there, and say which are not; at least one has to be."""
        found: dict[str, Folder] = {}
        for name in names:
            try:
                found[name] = self.images(name, purpose)
            except Unavailable as missing:
                if self.data is None:
                    raise
                self.say(f"skipped: {missing}")
        if not found:
            raise Unavailable(
                f"{purpose} needs one of the sets {', '.join(names)}, and none is in '{self.data}'."
            )
        return found

    def uses(self, name: str, hours: float) -> None:
        """Note a network that the present experiment uses, and how long it was trained."""
        self._hours[name] = hours

    def table(self, name: str, rows: Sequence[Mapping[str, Any]], show: bool = True) -> None:
        """Write a table as CSV, and print it."""
        write_csv(self.out / f"{name}.csv", rows)
        if show:
            self.say(text_table(rows))

    def figure(self, name: str, draw: Callable[[], Figure]) -> None:
        """Draw a figure and write it as PNG."""
        save_figure(self.out / f"{name}.png", draw)

    def judge(self, experiment: str, claims: Sequence[Claim]) -> None:
        """Print the verdicts of an experiment, and write them as CSV."""
        hours = sum(self._hours.values())
        # A trial says nothing about what had to be trained.
        tried = self.scale is Scale.TINY and bool(self._hours)
        self._hours.clear()
        rows = [
            {
                "experiment": experiment,
                "claim": claim.text,
                "paper": claim.paper,
                "ours": claim.ours,
                "verdict": str(Verdict.OPEN if tried else claim.verdict),
                "scale": str(self.scale),
                "hours": f"{hours:.2f}",
                "note": claim.note,
            }
            for claim in claims
        ]
        write_csv(self.out / f"{experiment}-claims.csv", rows)
        for row in rows:
            self.say(
                f"{row['verdict']}: {row['claim']} (paper: {row['paper']}; ours: {row['ours']})"
            )
