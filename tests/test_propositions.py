"""The paper's lemmas and propositions, measured."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from helpers.small_networks import DENOISERS, tiny
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from normeq import assert_equivariant, equivariance_error, normalized

Function = Callable[[Any], Any]

SCALE: list[Function] = [np.abs, lambda y: np.maximum(y, 0), lambda y: 3 * y[::-1]]
SHIFT: list[Function] = [lambda y: y + 0.3, lambda y: y + np.sin(np.roll(y, 1) - y), np.flip]
NORM: list[Function] = [np.sort, lambda y: (y + np.roll(y, 1)) / 2, lambda y: 2 * y - y.mean()]
image = np.random.default_rng(0).random(9)


@pytest.mark.parametrize(
    ("name", "functions"), [("scale", SCALE), ("shift", SHIFT), ("norm", NORM)]
)
def test_lemma_2_three_operations_keep_each_property(name: str, functions: list[Function]) -> None:
    for f, g in itertools.product(functions, repeat=2):
        assert_equivariant(lambda y, f=f, g=g: f(g(y)), image, name)
        assert_equivariant(lambda y, f=f, g=g: np.concatenate((f(y), g(y))), image, name)
        for t in (-1.5, 0.3, 2.0):
            assert_equivariant(lambda y, f=f, g=g, t=t: (1 - t) * f(y) + t * g(y), image, name)


def test_lemma_2_needs_an_affine_combination() -> None:
    assert equivariance_error(lambda y: np.sort(y) + y, image).shift > 0.1


@pytest.mark.parametrize("mode", ["min-max", "mean-std"])
@pytest.mark.parametrize("f", [np.square, np.sin, lambda y: (y > 0.4) * 1.0, lambda y: y[:3] ** 3])
def test_proposition_1_any_function_normalized_is_equivariant(mode: Any, f: Function) -> None:
    smooth_image = np.linspace(0, 1, 9) ** 2  # no value sits on the threshold of the third f
    assert_equivariant(normalized(f, mode, a=-0.2, b=1.7), smooth_image)


matrices = arrays.arrays(float, (2,), elements=st.floats(-3, 3))


@given(a=matrices, b=matrices)
def test_proposition_2_pairs_of_affine_maps(a: Any, b: Any) -> None:
    def piecewise(x: Any) -> Any:
        rows = a if x[0] <= x[1] else b
        return np.stack((rows, 1 - rows), 1) @ x  # each row sums to one

    for x in (np.array([0.2, 0.7]), np.array([0.7, 0.2])):
        assert_equivariant(piecewise, x)


@given(u=st.tuples(*[st.floats(-3, 3)] * 4))
def test_proposition_2_every_equivariant_function_of_two_is_such_a_pair(
    u: tuple[float, float, float, float],
) -> None:
    # Free values on ±(-1, 1)/√2 determine an equivariant function (lemma 1): extend them ...
    values = {-1: np.array(u[:2]), 1: np.array(u[2:])}

    def extended(x: Any) -> Any:
        half = (x[1] - x[0]) / 2
        side = 1 if half > 0 else -1
        return x.mean() + abs(half) * np.sqrt(2) * values[side]

    # ... and compare with the matrices of the paper's proof.
    e = 1 / np.sqrt(2)
    for side, x in ((1, np.array([0.2, 0.7])), (-1, np.array([0.9, -0.4]))):
        f = values[side]
        matrix = np.stack((e - side * f, e + side * f), 1) / (2 * e)
        np.testing.assert_allclose(matrix.sum(1), 1)
        np.testing.assert_allclose(extended(x), matrix @ x, atol=1e-12)


def test_proposition_2_sorting_is_one_of_them() -> None:
    identity, swap = np.eye(2), np.eye(2)[::-1]
    for x in (np.array([0.2, 0.7]), np.array([0.7, 0.2])):
        np.testing.assert_array_equal(np.sort(x), (identity if x[0] <= x[1] else swap) @ x)


@pytest.mark.parametrize("phi", [np.tanh, np.abs, np.square, lambda y: np.maximum(y, 0.1 * y)])
def test_proposition_2_no_element_wise_function_but_the_identity(phi: Function) -> None:
    assert equivariance_error(phi, np.array([-0.3, 0.8])).norm > 0.01
    assert_equivariant(lambda y: y, np.array([-0.3, 0.8]))


@pytest.mark.parametrize("name", [*DENOISERS, "vgg8b"])
@pytest.mark.parametrize("variant", ["norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped"])
def test_proposition_3_an_adaptive_affine_filter(name: str, variant: str) -> None:
    if name == "vgg8b" and variant == "norm-equiv-residual":
        pytest.skip("a classifier has no residual form")
    net = tiny(name, variant).double()
    size = 20 if name == "vgg8b" else 10
    y = torch.rand(1, 1, size, size, dtype=torch.float64, requires_grad=True)
    output = net(y)
    rows = torch.stack(
        [
            torch.autograd.grad(value, y, retain_graph=True)[0].flatten()
            for value in output.flatten()
        ]
    )
    torch.testing.assert_close(rows.sum(1), torch.ones(len(rows), dtype=torch.float64))
    torch.testing.assert_close(rows @ y.flatten(), output.flatten())


@pytest.mark.parametrize("variant", ["ordinary", "scale-equiv"])
def test_proposition_3_is_not_true_of_other_variants(variant: str) -> None:
    net = tiny("fdncnn", variant).double()
    y = torch.rand(1, 1, 8, 8, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(net(y)[0, 0, 4, 4], y)
    assert abs(gradient.sum() - 1) > 1e-3
