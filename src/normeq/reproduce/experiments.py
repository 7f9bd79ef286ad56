"""The loop over experiments."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from normeq._support.tables import make_folder
from normeq.errors import NormeqError
from normeq.reproduce import Result
from normeq.reproduce.scale import Scale
from normeq.reproduce.trainable import Trainable
from normeq.reproduce.workspace import Unavailable, Workspace

#: Exit code of a command that was asked to stop.
STOPPED = 130
#: Every table and figure, in the order in which all of them are made.
EXPERIMENTS = tuple(str(result) for result in Result if result is not Result.ALL)


def run_experiments(names: Sequence[str], workspace: Workspace) -> None:
    """Run experiments one after the other.

    Of several, one whose images or folders are missing is skipped with a sentence, and one that
    fails, as by a training that diverges, does not stop the others; a single one raises it.

    Parameters
    ----------
    names
        Some of `EXPERIMENTS`.
    workspace
        Where images, networks and results are.
    """
    make_folder(workspace.out)
    for folder, option in ((workspace.data, "--data"), (workspace.weights, "--weights")):
        if folder is not None and not folder.is_dir():
            raise Unavailable(f"'{folder}', given by {option}, is not a folder.")
    workspace.plan = networks_of(names, workspace.scale)
    reduced = reductions(workspace.plan, workspace.scale)
    if reduced:
        workspace.say(f"scale {workspace.scale} differs from the paper: {'; '.join(reduced)}")
    failed = []
    for number, name in enumerate(names, 1):
        workspace.say(f"\n{name} ({number} of {len(names)})")
        try:
            _module(name).reproduce(workspace)
        except NormeqError as error:
            if len(names) == 1 or error.exit_code == STOPPED:
                raise
            if isinstance(error, Unavailable):
                workspace.say(f"skipped: {error}")
            else:
                failed.append(name)
                workspace.say(f"failed: {error}")
    if failed:
        raise NormeqError(f"{len(failed)} of {len(names)} experiments failed: {', '.join(failed)}.")


def networks_of(names: Sequence[str], scale: Scale) -> list[Trainable]:
    """List the networks of some experiments, each once."""
    listed: dict[str, Trainable] = {}
    for name in names:
        needed = getattr(_module(name), "networks", None)
        for network in needed(scale) if needed else []:
            listed.setdefault(network.name, network)
    return list(listed.values())


def reductions(networks: Sequence[Trainable], scale: Scale) -> list[str]:
    """List how networks and budgets of a scale differ from the paper's."""
    return list(dict.fromkeys(line for each in networks for line in each.reductions(scale)))


def _module(name: str) -> ModuleType:
    return import_module(f"normeq.reproduce.{name.replace('-', '_')}")
