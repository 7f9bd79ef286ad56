"""Networks that experiments need: used again, resumed or trained, and never twice."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from normeq._support.locking import locked
from normeq.errors import FileError, UsageError
from normeq.models import Network, Wrapped, load
from normeq.reproduce.scale import Scale
from normeq.reproduce.workspace import Unavailable, Workspace

AnyTrainable = TypeVar("AnyTrainable", bound="Trainable")

#: The file of a run whose weights are used.
WEIGHTS = "best.safetensors"


class Trainable(ABC):
    """A network with a recipe; two are the same if they have one name.

    A run is kept in a folder whose name ends with a digest of the recipe: when that changes, there
    is a new run, and when it does not, the old one is used or continued.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """As the recipe is called: also the name of a weights file that replaces training."""

    @property
    @abstractmethod
    def is_essential(self) -> bool:
        """Whether the paper has it: a table is complete without other seeds and our own forms."""

    @abstractmethod
    def recipe_text(self, scale: Scale) -> str:
        """Return everything that decides what the training computes."""

    @abstractmethod
    def reductions(self, scale: Scale) -> list[str]:
        """List how networks of its kind are smaller, or trained less, than in the paper."""

    @abstractmethod
    def steps(self, scale: Scale) -> int:
        """Return how many steps the training takes."""

    @abstractmethod
    def steps_done(self, run: Path) -> int:
        """Return how many steps a run has taken."""

    @abstractmethod
    def train(self, workspace: Workspace, run: Path) -> None:
        """Train, or continue, until the end."""

    def run_folder(self, workspace: Workspace) -> Path | None:
        """Return where the run of this network is kept."""
        if workspace.runs is None:
            return None
        digest = hashlib.sha256(self.recipe_text(workspace.scale).encode()).hexdigest()[:8]
        name = self.name.removeprefix("paper-")
        return workspace.runs / f"{workspace.scale}-{name}-{digest}"

    def given(self, workspace: Workspace) -> Path | None:
        """Return the weights file that replaces training, if there is one."""
        if workspace.weights is None:
            return None
        path = workspace.weights / f"{self.name}.safetensors"
        return path if path.is_file() else None

    def steps_left(self, workspace: Workspace) -> int:
        """Return how many steps are still to be taken."""
        if self.given(workspace) is not None:
            return 0
        run, steps = self.run_folder(workspace), self.steps(workspace.scale)
        return steps if run is None else max(0, steps - self.steps_done(run))

    def weights_file(self, workspace: Workspace) -> Path:
        """Return the weights, after training what is left of them."""
        given = self.given(workspace)
        if given is not None:
            return given
        run = self.run_folder(workspace)
        if run is None:
            raise Unavailable(
                f"{self.name} has to be trained: give --runs, a folder to keep it, or --weights, a "
                f"folder with {self.name}.safetensors."
            )
        if self.steps_left(workspace) > 0:
            workspace.say(_progress(self, workspace))
            try:
                run.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise FileError(f"'{run}' cannot be used as a run folder.") from error
            with locked(run):
                self.train(workspace, run)
        if not (run / WEIGHTS).is_file():
            raise FileError(
                f"'{run}' is trained, but {WEIGHTS} is missing: delete the folder to train again."
            )
        return run / WEIGHTS

    def network(self, workspace: Workspace) -> Network | Wrapped:
        """Return the trained network."""
        path = self.weights_file(workspace)
        network = load(str(path))
        workspace.uses(self.name, _hours(network.card))
        return network


def usable(networks: Sequence[AnyTrainable], workspace: Workspace) -> list[AnyTrainable]:
    """Without --runs, leave out networks that are neither given nor essential, and say so."""
    if workspace.runs is not None:
        return list(networks)
    kept = [each for each in networks if each.is_essential or each.given(workspace) is not None]
    left_out = [each.name for each in networks if each not in kept]
    if left_out:
        workspace.say(
            f"left out, because neither --runs nor weights are given: {', '.join(left_out)}"
        )
    return kept


def _hours(card: dict[str, Any]) -> float:
    hours = card.get("hours", 0.0)
    return float(hours) if isinstance(hours, int | float) else 0.0


def _progress(each: Trainable, workspace: Workspace) -> str:
    """Say which network is trained, and how long all that are planned will take."""
    left = [other for other in workspace.plan if other.steps_left(workspace) > 0]
    position = f"network {len(workspace.plan) - len(left) + 1} of {len(workspace.plan)}"
    left = [other for other in left if other.name != each.name] + [each]
    hours = sum(other.steps_left(workspace) for other in left) * _hours_per_step(workspace)
    when = f"about {hours:.1f} hours left for all of them" if hours else "time left not known yet"
    return f"training {each.name} at scale {workspace.scale}: {position}, {when}"


def _hours_per_step(workspace: Workspace) -> float:
    """Return the mean pace of the runs that are finished; 0 without any."""
    hours = steps = 0.0
    for each in workspace.plan:
        run = each.run_folder(workspace)
        if run is not None and (run / WEIGHTS).is_file() and not each.steps_left(workspace):
            try:
                hours += _hours(load(str(run / WEIGHTS)).card)
            except UsageError:
                continue
            steps += each.steps(workspace.scale)
    return hours / steps if steps else 0.0
