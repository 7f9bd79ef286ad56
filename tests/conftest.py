"""What all tests share: seeds, precisions, hypothesis settings."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# Two test processes on two cores: more threads only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch
from hypothesis import settings

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

# A run in the background ignores Ctrl-C, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("normeq", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("normeq")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


@pytest.fixture(scope="session")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of three small photographs."""
    from helpers.training_runs import write_photographs

    return write_photographs(tmp_path_factory.mktemp("data") / "photographs")


@pytest.fixture(scope="session")
def finished(photographs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a short training run that was never interrupted."""
    from helpers.training_runs import short_recipe

    from normeq.training import train

    out = tmp_path_factory.mktemp("finished") / "run"
    train(short_recipe(), photographs, out, validation=photographs)
    return out


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the weights file of a tiny equivariant network."""
    from helpers.small_networks import tiny

    import normeq

    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    normeq.save(tiny("unet", "norm-equiv-residual"), path, {"trained on": "nothing"})
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[WebDriver]:
    """Start a browser that all tests share; tests that use it belong to one xdist group."""
    from helpers.browser import running_browser

    with running_browser() as browser:
        yield browser
