"""napari finds the plugin, and all that its manifest names exists."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import normeq
from normeq.napari import sample_images

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "src" / "normeq" / "napari" / "napari.yaml"


def test_the_manifest_is_valid_and_named_in_the_project() -> None:
    npe2 = pytest.importorskip("npe2", reason="napari is not installed")
    manifest = npe2.PluginManifest.from_file(MANIFEST)
    for command in manifest.contributions.commands:
        module, _, name = command.python_name.partition(":")
        assert callable(getattr(import_module(module), name))
    assert "napari/layers/filter" in manifest.contributions.menus
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["napari.manifest"] == {"normeq": "normeq.napari:napari.yaml"}


def test_no_extra_for_users_brings_a_binding_of_qt() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    bindings = {
        extra
        for extra, packages in extras.items()
        for package in packages
        if package.lower().startswith(("pyqt", "pyside")) or "napari[" in package
    }
    assert bindings == {"test"}
    assert "pyqt" not in str(extras).lower()


@pytest.mark.parametrize("make", ["noisy_cells", "noisy_photograph", "noisy_colours"])
def test_samples_are_made_alike_every_time_and_are_noisy(make: str) -> None:
    ((data, look, kind),) = getattr(sample_images, make)()
    ((again, *_),) = getattr(sample_images, make)()
    np.testing.assert_array_equal(data, again)
    assert kind == "image"
    assert len(look.get("axis_labels", "yx")) + look.get("rgb", False) == data.ndim
    planes = data[None, ..., 1] if look.get("rgb") else data.reshape(-1, *data.shape[-2:])
    assert normeq.estimate_sigma(planes[len(planes) // 2].astype(np.float64)) > 3
