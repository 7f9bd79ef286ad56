from __future__ import annotations

import threading
import time
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from skimage import data

from normeq.training.data import Patches, prefetch
from normeq.training.recipe import Data, Mixture
from normeq.training.samples import SampleBatch

IMAGES = [data.camera()[None, :50, :70], data.coins()[None, :64, :64]]
RECIPE = Data(patch=16, sigma=(5, 50))
EVERYTHING = Mixture(
    colored=0.3,
    camera=0.2,
    smooth=0.3,
    signal=0.3,
    not_told=0.3,
    understated=0.2,
    overstated=0.2,
    inexact=0.3,
)
MIXED = Data(patch=16, sigma=(5, 50), detail=1, reduced=0.5, sharpened=0.5, mixture=EVERYTHING)
FIELDS = [field.name for field in fields(SampleBatch)]


@pytest.mark.parametrize("recipe", [RECIPE, MIXED], ids=["white", "mixture"])
@given(seed=st.integers(0, 2**40), index=st.integers(0, 2**60))
def test_a_sample_is_a_function_of_seed_and_index(recipe, seed, index):
    one, other = (Patches(IMAGES, recipe, seed) for _ in range(2))
    other.sample(index + 1)
    first, again = one.sample(index), other.sample(index)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))


def test_seeds_and_indices_all_give_different_noise():
    samples = [
        Patches(IMAGES, RECIPE, seed).sample(index) for seed in range(8) for index in range(8)
    ]
    assert len({(sample.noisy - sample.target).tobytes() for sample in samples}) == 64


def test_batches_do_not_depend_on_how_they_are_shared():
    patches = Patches(IMAGES, MIXED, 0)
    whole, halves = patches.batch(40, 6), [patches.batch(40, 3), patches.batch(43, 3)]
    for name in FIELDS:
        parts = torch.cat([getattr(half, name) for half in halves])
        assert torch.equal(getattr(whole, name), parts)


def test_samples_show_every_symmetry_of_every_image():
    patches = Patches([np.arange(256, dtype=np.uint8).reshape(1, 16, 16)], RECIPE, 0)
    image = np.arange(256).reshape(16, 16)
    symmetries = {
        turned.tobytes()
        for k in range(4)
        for turned in (np.rot90(image, k), np.rot90(image, k)[:, ::-1])
    }
    seen = {
        np.rint(patches.sample(i).target[0] * 255).astype(image.dtype).tobytes() for i in range(100)
    }
    assert seen == symmetries


def test_crops_reach_every_corner():
    image = np.zeros((1, 17, 18), np.uint8)
    image[0, [0, 0, -1, -1], [0, -1, 0, -1]] = 255
    patches = Patches([image], RECIPE, 0)
    bright = [patches.sample(index).target.sum() for index in range(200)]
    # Crops at the 4 corners hold one bright pixel, the 2 between them on the long side none.
    assert set(bright) == {0.0, 1.0}
    assert 0.5 < np.mean(bright) < 0.85


def test_noise_levels_fill_their_range_and_noise_has_them():
    samples = [Patches(IMAGES, RECIPE, 0).sample(index) for index in range(400)]
    levels = np.array([sample.level for sample in samples]) * 255
    assert 5 <= levels.min() < 6.5
    assert 48.5 < levels.max() <= 50
    assert levels.mean() == pytest.approx(27.5, abs=2)
    ratios = [(sample.noisy - sample.target).std() / sample.level for sample in samples]
    assert np.mean(ratios) == pytest.approx(1, abs=0.02)


def test_batches_hold_the_truth_and_the_noisy_patch():
    patches = Patches(IMAGES, Data(patch=16, sigma=25), 3)
    batch, sample = patches.batch(7, 2), patches.sample(8)
    assert batch.level[1].item() == pytest.approx(25 / 255) == sample.level
    for name in ("noisy", "target", "sigma", "correlation"):
        assert torch.equal(getattr(batch, name)[1], torch.from_numpy(getattr(sample, name)))
    assert batch.sigma.shape == (2, 1, 16, 16)
    assert (batch.sigma == batch.correlation).all()  # white noise
    torch.testing.assert_close(batch.sigma, torch.full_like(batch.sigma, 25 / 255))


def test_crops_with_detail_are_drawn_more_often():
    image = np.full((1, 64, 128), 128, np.uint8)
    image[:, :, 64:] = np.random.default_rng(0).integers(0, 255, (64, 64))
    shares = {}
    for power in (0, 1):
        patches = Patches([image], Data(patch=16, sigma=1, detail=power), 0)
        shares[power] = np.mean([patches.sample(i).target.std() > 0.1 for i in range(200)])
    assert shares[0] < 0.65
    assert shares[1] > 0.9


def test_what_a_microscope_sees_is_neither_reduced_nor_sharpened():
    plain = RECIPE.model_copy(update={"microscope": 1.0})
    sharp = plain.model_copy(update={"reduced": 1.0, "sharpened": 1.0})
    partly = sharp.model_copy(update={"microscope": 0.5})
    samples = [
        [Patches(IMAGES, recipe, 0).sample(n) for n in range(20)]
        for recipe in (plain, sharp, partly)
    ]
    same = [
        [np.array_equal(a.target, b.target) for a, b in zip(samples[0], s, strict=True)]
        for s in samples[1:]
    ]
    assert all(same[0])
    assert 0 < sum(same[1]) < 20


def test_images_without_detail_are_drawn_all_the_same():
    patches = Patches([np.zeros((1, 20, 20), np.uint8)], MIXED, 0)
    assert all(np.isfinite(patches.sample(index).noisy).all() for index in range(50))


def numbered(index: int) -> SampleBatch:
    return SampleBatch(*(torch.tensor([float(index)]) for _ in FIELDS))


def test_prefetching_keeps_the_order_and_works_ahead():
    made = []

    def make(index: int) -> SampleBatch:
        made.append(index)
        return numbered(index)

    batches = prefetch(make, range(0, 100, 10), ahead=3)
    values = [next(batches).noisy.item()]
    deadline = time.monotonic() + 10
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert 4 <= len(made) <= 5  # the one that was taken, three that wait, and one in hand
    values += [batch.noisy.item() for batch in batches]
    assert values == made == list(range(0, 100, 10))


def test_a_failure_while_preparing_reaches_the_trainer():
    def make(index: int) -> SampleBatch:
        if index == 2:
            raise MemoryError("no room")
        return numbered(index)

    batches = prefetch(make, range(5))
    with pytest.raises(MemoryError, match="no room"):
        list(batches)


def test_closing_ends_the_thread_even_when_it_is_far_ahead():
    batches = prefetch(numbered, range(10**9), ahead=2)
    next(batches)
    assert any(thread.name.startswith("normeq-prefetch") for thread in threading.enumerate())
    batches.close()
    assert not any(thread.name.startswith("normeq-prefetch") for thread in threading.enumerate())
