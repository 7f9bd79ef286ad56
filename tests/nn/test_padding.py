from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from normeq.errors import UsageError
from normeq.nn import copy_pad, pad_to_multiple


@given(
    size=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    pad=st.integers(0, 4),
    mode=st.sampled_from(["reflect", "replicate", "circular"]),
)
def test_any_size_is_padded_with_its_own_values(size: list[int], pad: int, mode: str) -> None:
    x = torch.rand(2, 3, *size)
    padded = copy_pad(x, [pad] * (2 * len(size)), mode)
    assert padded.shape[2:] == tuple(n + 2 * pad for n in size)
    rows = zip(x.flatten(2).flatten(0, 1), padded.flatten(2).flatten(0, 1), strict=True)
    assert all(torch.isin(after, before).all() for before, after in rows)
    inner = tuple(slice(pad, pad + n) for n in size)
    assert torch.equal(padded[(..., *inner)], x)


def test_long_axes_keep_their_mode_beside_a_short_one() -> None:
    x = torch.rand(1, 1, 1, 6)
    expected = F.pad(F.pad(x, (2, 2, 0, 0), "reflect"), (0, 0, 2, 2), "replicate")
    assert torch.equal(copy_pad(x, (2, 2, 2, 2)), expected)


def test_zeros_are_refused() -> None:
    with pytest.raises(UsageError, match="'zeros' does not copy"):
        copy_pad(torch.rand(1, 1, 4), (1, 1), "zeros")


@given(height=st.integers(1, 9), width=st.integers(1, 9), multiple=st.integers(1, 8))
def test_padding_to_a_multiple_is_minimal(height: int, width: int, multiple: int) -> None:
    padded = pad_to_multiple(torch.rand(1, 1, height, width), multiple)
    for before, after in zip((height, width), padded.shape[-2:], strict=True):
        assert after % multiple == 0
        assert 0 <= after - before < multiple
