from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normeq.training.recipe import Optimization
from normeq.training.schedule import ema_decay, learning_rate


def rates(steps: int = 100, **fields) -> list[float]:
    settings = Optimization(steps=steps, batch=1, learning_rate=1.0, **fields)
    return [learning_rate(step, settings) for step in range(steps)]


def test_constant_with_warmup_and_a_final_fall():
    values = rates(warmup=10, decay_steps=20)
    assert values[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert values[10:80] == [1.0] * 70
    assert values[80] == pytest.approx(1.0)
    assert values[90] == pytest.approx(0.5)
    assert 0 < values[99] < 0.01


def test_prolonging_a_constant_run_leaves_its_past_alone():
    short, long = rates(100, warmup=5), rates(300, warmup=5, decay_steps=200)
    assert long[:100] == short


def test_halving():
    values = rates(schedule="halve", halve_every=40)
    assert values == [1.0] * 40 + [0.5] * 40 + [0.25] * 20


def test_cosine_falls_from_the_end_of_the_warmup_to_nothing():
    values = rates(schedule="cosine", warmup=20)
    assert values[20] == 1.0
    assert values[60] == pytest.approx(0.5)
    assert values[99] < 0.001
    assert all(a > b for a, b in pairwise(values[20:]))


@given(
    st.sampled_from(["constant", "halve", "cosine"]),
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(1, 60),
)
def test_rates_stay_between_nothing_and_the_full_rate(schedule, warmup, decay, halving):
    values = rates(schedule=schedule, warmup=warmup, decay_steps=decay, halve_every=halving)
    assert all(0 < value <= 1 for value in values)


def test_the_average_forgets_its_first_weights_quickly_then_slowly():
    decays = [ema_decay(step, 0.99) for step in range(2000)]
    assert decays[0] == 0.1
    assert decays == sorted(decays)
    assert decays[-1] == 0.99
