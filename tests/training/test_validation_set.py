from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.training_runs import short_recipe
from skimage import data

from normeq.training.recipe import Validation
from normeq.training.validation_set import Condition, conditions, noisy_images

IMAGES = [data.camera()[None, :50, :70], data.coins()[None, :64, :64]]
RECIPE = Validation(sigma=(10, 20), crop=32)


def noise_of(condition: Condition) -> list[torch.Tensor]:
    batches = noisy_images(IMAGES, condition, Validation(), "gaussian", 0)
    return [batch.noisy - batch.target for batch in batches]


def test_the_set_is_fixed_and_cropped_to_its_centre():
    weak, strong = (
        list(noisy_images(IMAGES, Condition(sigma), RECIPE, "gaussian", 0))
        for sigma in RECIPE.sigma
    )
    assert [batch.noisy.shape for batch in weak + strong] == [(1, 1, 32, 32)] * 4
    again = noisy_images(IMAGES, Condition(10), RECIPE, "gaussian", 0)
    assert all(torch.equal(a.noisy, b.noisy) for a, b in zip(weak, again, strict=True))
    centre = torch.from_numpy(IMAGES[0][:, 9:41, 19:51] / np.float32(255))
    assert torch.equal(weak[0].target[0], centre)
    levels = tuple((batch.noisy - batch.target).std() * 255 for batch in (weak[0], strong[0]))
    assert levels == pytest.approx((10, 20), rel=0.1)


def test_what_is_told_does_not_change_the_noise():
    told, not_told = (
        next(noisy_images(IMAGES, Condition(25, told=told), RECIPE, "gaussian", 0))
        for told in (True, False)
    )
    assert torch.equal(told.noisy, not_told.noisy)
    torch.testing.assert_close(told.sigma, torch.full_like(told.sigma, 25 / 255))
    assert not not_told.sigma.any()
    assert not not_told.correlation.any()


def test_correlated_noise_is_as_strong_and_its_length_is_told():
    condition = Condition(25, correlated=True)
    for noise in noise_of(condition):
        assert noise.std() * 255 == pytest.approx(25, rel=0.15)
        neighbours = (noise[..., 1:] * noise[..., :-1]).mean() / noise.var()
        assert neighbours == pytest.approx(np.exp(-1 / 4), abs=0.1)
    batch = next(noisy_images(IMAGES, condition, RECIPE, "gaussian", 0))
    assert (batch.correlation > 2 * batch.sigma).all()


def test_conditions_follow_what_the_network_takes():
    levels = ("validation.sigma=[15,25]", "validation.correlated=[25]")

    def named(takes_sigma: str) -> list[str]:
        recipe = short_recipe(f"network.takes_sigma={takes_sigma}", *levels)
        return [condition.name for condition in conditions(recipe)]

    assert named("never") == named("always") == ["15", "25", "25_correlated"]
    assert named("optional") == ["15", "25", "15_not_told", "25_not_told", "25_correlated"]
