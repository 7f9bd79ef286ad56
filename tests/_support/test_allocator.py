from __future__ import annotations

import subprocess
import sys

import pytest

FAULTS = """
import resource, torch
import normeq
if {keep}:
    normeq.keep_freed()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):  # until the blocks of this size have found their places
    torch.ones(10_000_000)
before = faults()
for _ in range(10):
    torch.ones(10_000_000)
print(faults() - before)
"""


def page_faults(keep: bool) -> int:
    """Count the pages that a process gets from the system for ten tensors of 40 MB in turn."""
    program = [sys.executable, "-c", FAULTS.format(keep=keep)]
    return int(subprocess.run(program, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only the C library of Linux")
def test_kept_memory_is_not_fetched_again() -> None:
    assert page_faults(keep=True) < page_faults(keep=False) / 10
