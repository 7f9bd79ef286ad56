from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from skimage import data

from normeq.training.data import Batch, Patches, noisy_images, prefetch
from normeq.training.recipe import Data, Validation

IMAGES = [data.camera()[None, :50, :70], data.coins()[None, :64, :64]]
RECIPE = Data(patch=16, sigma=(5, 50))


@given(seed=st.integers(0, 2**40), index=st.integers(0, 2**60))
def test_a_sample_is_a_function_of_seed_and_index(seed, index):
    one, other = (Patches(IMAGES, RECIPE, seed) for _ in range(2))
    other.sample(index + 1)
    first, again = one.sample(index), other.sample(index)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert first[2] == again[2]


def test_seeds_and_indices_all_give_different_noise():
    noises = [
        Patches(IMAGES, RECIPE, seed).sample(index)[1] for seed in range(8) for index in range(8)
    ]
    assert len({noise.tobytes() for noise in noises}) == 64


def test_batches_do_not_depend_on_how_they_are_shared():
    patches = Patches(IMAGES, RECIPE, 0)
    whole, halves = patches.batch(40, 6), [patches.batch(40, 3), patches.batch(43, 3)]
    for name in ("noisy", "clean", "sigma"):
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
        np.rint(patches.sample(i)[0][0] * 255).astype(image.dtype).tobytes() for i in range(100)
    }
    assert seen == symmetries


def test_crops_reach_every_corner():
    image = np.zeros((1, 17, 18), np.uint8)
    image[0, [0, 0, -1, -1], [0, -1, 0, -1]] = 255
    patches = Patches([image], RECIPE, 0)
    bright = [patches.sample(index)[0].sum() for index in range(200)]
    # Crops at the 4 corners hold one bright pixel, the 2 between them on the long side none.
    assert set(bright) == {0.0, 1.0}
    assert 0.5 < np.mean(bright) < 0.85


def test_noise_levels_fill_their_range_and_noise_has_them():
    samples = [Patches(IMAGES, RECIPE, 0).sample(index) for index in range(400)]
    levels = np.array([sigma for _, _, sigma in samples]) * 255
    assert 5 <= levels.min() < 6.5
    assert 48.5 < levels.max() <= 50
    assert levels.mean() == pytest.approx(27.5, abs=2)
    ratios = [noise.std() / sigma for _, noise, sigma in samples]
    assert np.mean(ratios) == pytest.approx(1, abs=0.02)


def test_batches_hold_the_truth_and_the_noisy_patch():
    patches = Patches(IMAGES, Data(patch=16, sigma=25), 3)
    batch = patches.batch(7, 2)
    clean, noise, sigma = patches.sample(8)
    assert batch.sigma[1].item() == pytest.approx(25 / 255) == sigma
    assert torch.equal(batch.clean[1], torch.from_numpy(clean))
    assert torch.equal(batch.noisy[1], torch.from_numpy(clean + noise))


def test_the_validation_set_is_fixed_and_cropped_to_its_centre():
    recipe = Validation(sigma=(10, 20), crop=32)
    once, again = (list(noisy_images(IMAGES, recipe, "gaussian", 0)) for _ in range(2))
    assert [batch.noisy.shape for batch in once] == [(1, 1, 32, 32)] * 4
    assert all(torch.equal(a.noisy, b.noisy) for a, b in zip(once, again, strict=True))
    centre = torch.from_numpy(IMAGES[0][:, 9:41, 19:51] / np.float32(255))
    assert torch.equal(once[0].clean[0], centre)
    weak, strong = ((batch.noisy - batch.clean).std() * 255 for batch in (once[0], once[2]))
    assert (weak, strong) == pytest.approx((10, 20), rel=0.1)


def numbered(index: int) -> Batch:
    return Batch(*(torch.tensor([float(index)]) for _ in range(3)))


def test_prefetching_keeps_the_order_and_works_ahead():
    made = []

    def make(index: int) -> Batch:
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
    def make(index: int) -> Batch:
        if index == 2:
            raise MemoryError("no room")
        return numbered(index)

    batches = prefetch(make, range(5))
    with pytest.raises(MemoryError, match="no room"):
        list(batches)


def test_closing_ends_the_thread_even_when_it_is_far_ahead():
    batches = prefetch(numbered, range(10**9), ahead=2)
    next(batches)
    batches.close()
    assert "normeq-prefetch" not in {thread.name for thread in threading.enumerate()}
