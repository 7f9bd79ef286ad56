"""The models that the page offers: those by name, the user's own, and one that depends on units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from torch import nn

from normeq.classical import METHODS
from normeq.denoising.names import canonical, resolve_once
from normeq.models import load, shipped

#: What the network that does not follow a change of units is called.
ORDINARY = "ordinary"


@dataclass(frozen=True)
class OfferedModel:
    """A model of the page.

    Attributes
    ----------
    name
        What requests call it.
    label
        What people read.
    model
        What `normeq.denoise` takes.
    value_range
        Values that are 0 and 1 to a model that is not equivariant.
    """

    name: str
    label: str
    model: str | Callable[..., Any]
    value_range: tuple[float, float] | None = None

    def network(self, name: str) -> nn.Module | None:
        """Return the network that explains itself under the name of a denoiser, if it is one."""
        found = resolve_once(name) if isinstance(self.model, str) else self.model
        return found if isinstance(found, nn.Module) else None


def offered_models(
    own: str, value_range: tuple[float, float] | None, ordinary_range: tuple[float, float]
) -> dict[str, OfferedModel]:
    """Return the models of the page by name, the user's own first.

    Parameters
    ----------
    own
        What the user has chosen, as `normeq.denoising.names.resolve` takes it.
    value_range
        What the user says is 0 and 1 to that model.
    ordinary_range
        What is 0 and 1 to the ordinary network, which has biases and was trained on images whose
        values go from 0 to 1. It is here to be compared, not to be used.
    """
    own = canonical(own)
    names = dict.fromkeys([own, *shipped(), *METHODS])
    models = {
        name: OfferedModel(name, _label(name), name, value_range if name == own else None)
        for name in names
    }
    label = "ordinary (an example that depends on units)"
    models[ORDINARY] = OfferedModel(ORDINARY, label, ordinary_network(), ordinary_range)
    return models


@lru_cache(maxsize=1)
def ordinary_network() -> nn.Module:
    """Return the small network with biases, of the recipe explore-ordinary."""
    weights = resources.files("normeq.explorer") / "ordinary.safetensors"
    with resources.as_file(weights) as path:
        return load(path).eval()


def _label(name: str) -> str:
    if name in METHODS:
        return f"{name} (classical)"
    return f"{name} (shipped)" if name in shipped() else name
