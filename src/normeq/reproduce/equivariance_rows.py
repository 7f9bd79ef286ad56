"""The rows of the table of equivariances: how each denoiser is built and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from normeq.classical import METHODS
from normeq.models import create
from normeq.models.building_blocks import VARIANTS, Variant
from normeq.reproduce.networks import NLRN, DnCNN, Restormer, SwinIR, random_network

__all__ = ["TableEntry", "entries"]

_SMALL_SIZES: dict[str, dict[str, Any]] = {
    "fdncnn": {"width": 16, "depth": 6},
    "ffdnet": {"width": 16, "depth": 5},
    "drunet": {"widths": (8, 16, 32, 64), "blocks": 1},
    "unet": {"widths": (8, 16, 32), "blocks": 1},
}
_TITLES = {"fdncnn": "FDnCNN", "ffdnet": "FFDNet", "drunet": "DRUNet", "unet": "U-Net"}
_SAID_OF_VARIANTS = {"none": (False, False), "scale": (True, False), "norm": (True, True)}

_WNNM_CAUSE = (
    "the authors' program, followed here, sets each group's mean patch aside before shrinking; "
    "the published equations do not (see below)"
)


@dataclass(frozen=True)
class TableEntry:
    """A denoiser to be measured.

    Attributes
    ----------
    section
        Where in the table it stands.
    name
        What it is called there.
    build
        Makes the function ``f(image)``, or ``f(image, sigma)`` if it is not blind.
    blind
        Whether it takes no sigma.
    said
        Whether scale and shift equivariance are said to hold: by the paper, or by construction.
    cause
        Why a measurement may differ from what is said.
    """

    section: str
    name: str
    build: Callable[[], Callable[..., Any]]
    blind: bool
    said: tuple[bool, bool]
    cause: str = ""


def entries() -> list[TableEntry]:
    """List the denoisers of the paper's table, then the rest."""
    return [*_paper(), *_other_methods(), *_variants()]


def _paper() -> list[TableEntry]:
    section = "The paper's table"

    def classical(title: str, name: str, said: tuple[bool, bool], cause: str = "") -> TableEntry:
        return TableEntry(section, title, lambda: METHODS[name], METHODS[name].blind, said, cause)

    def network(title: str, factory: Callable[[], Any]) -> TableEntry:
        build = partial(random_network, factory)
        return TableEntry(section, title, build, blind=True, said=(False, False))

    return [
        classical("TV", "tv", (True, True)),
        classical("NLM", "nlm", (True, True)),
        classical("NL-Ridge", "nlridge", (True, True)),
        classical("DCT", "dct", (True, False)),
        classical("BM3D", "bm3d", (True, False)),
        classical("WNNM", "wnnm", (True, False), _WNNM_CAUSE),
        network("DnCNN", DnCNN),
        network("NLRN", NLRN),
        network("SwinIR", SwinIR),
        network("Restormer", Restormer),
        # The published DRUNet has no bias and takes a noise map.
        TableEntry(
            section, "DRUNet", _network("drunet", "scale-equiv", False), False, (True, False)
        ),
    ]


def _other_methods() -> list[TableEntry]:
    section = "Filters and other forms"
    filters = {
        "Mean filter": "mean_filter",
        "Gaussian filter": "gaussian_filter",
        "Median filter": "median_filter",
    }

    def with_option(title: str, name: str, **options: Any) -> TableEntry:
        return TableEntry(
            section, title, lambda: partial(METHODS[name], **options), False, (True, False)
        )

    return [
        *(
            TableEntry(section, t, partial(METHODS.__getitem__, n), True, (True, True))
            for t, n in filters.items()
        ),
        with_option("NL-Ridge, linear constraint", "nlridge", constraint="linear"),
        with_option("WNNM, group means kept", "wnnm", subtract_mean=False),
    ]


def _variants() -> list[TableEntry]:
    return [
        TableEntry(
            "Our variants",
            f"{_TITLES[name]}, {variant}",
            build := _network(name, variant, blind=True),
            blind=True,
            said=_SAID_OF_VARIANTS[build().equivariance],
        )
        for name in _SMALL_SIZES
        for variant in VARIANTS
    ]


def _network(name: str, variant: Variant, blind: bool) -> Callable[[], Any]:
    return partial(
        random_network, partial(create, name, variant, blind=blind, **_SMALL_SIZES[name])
    )
