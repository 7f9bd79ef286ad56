from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from normeq.errors import UsageError
from normeq.nn import SortPool


@given(
    channels=st.integers(1, 9),
    spatial=st.lists(st.integers(1, 4), max_size=3),
    group=st.integers(2, 5),
)
def test_groups_come_out_sorted_and_the_rest_passes(
    channels: int, spatial: list[int], group: int
) -> None:
    x = torch.rand(2, channels, *spatial)
    y = SortPool(group)(x)
    whole = channels - channels % group
    assert torch.equal(y[:, whole:], x[:, whole:])
    for start in range(0, whole, group):
        expected = x[:, start : start + group].sort(1).values
        assert torch.equal(y[:, start : start + group], expected)


@pytest.mark.parametrize("group", [2, 3])
def test_gradients_are_exact(group: int) -> None:
    x = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(SortPool(group), x)


def test_a_tie_shares_its_gradient() -> None:
    x = torch.zeros(1, 2, 3, requires_grad=True)
    SortPool()(x).sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))


@given(gain=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3))
def test_equivariance_is_exact_up_to_rounding(gain: float, offset: float) -> None:
    x = torch.rand(2, 6, 4, dtype=torch.float64)
    torch.testing.assert_close(SortPool()(gain * x + offset), gain * SortPool()(x) + offset)


def test_a_group_of_one_is_refused() -> None:
    with pytest.raises(UsageError, match="group=1"):
        SortPool(1)
