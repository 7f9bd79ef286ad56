from __future__ import annotations

from pathlib import Path

import pytest
from helpers.small_networks import tiny

import normeq


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    normeq.save(tiny("unet", "norm-equiv-residual"), path, {"trained on": "nothing"})
    return path


@pytest.fixture(autouse=True)
def _without_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the defaults of whoever runs the tests out of them."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-configuration"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "no-configuration"))
