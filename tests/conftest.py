"""What all tests share: seeds, precisions, hypothesis settings."""

from __future__ import annotations

import os

# Two test processes on two cores: more threads only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch
from hypothesis import settings

settings.register_profile("normeq", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("normeq")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param
