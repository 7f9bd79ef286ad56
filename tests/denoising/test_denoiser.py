"""How the work is cut, and what tells one denoiser from another."""

import numpy as np
import pytest
import torch
from helpers.small_networks import tiny

import normeq
from normeq._support import memory
from normeq.denoising.names import denoiser_for
from normeq.denoising.tiles import align_up, plan_tiles
from normeq.images.array import ArraySource
from normeq.models import shipped


def image(height: int, width: int) -> ArraySource:
    # One number, seen as an image of any size: nothing is stored.
    return ArraySource(np.broadcast_to(np.float32(0), (3, height, width)), "ZYX")


@pytest.fixture
def scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 2**26)


def test_what_fits_is_processed_whole_and_in_batches() -> None:
    plan = plan_tiles(denoiser_for(tiny("unet")), image(200, 300))
    assert plan.tile == (200, 300)
    assert plan.rows == 200
    assert plan.frames > 1


@pytest.mark.usefixtures("scarce")
@pytest.mark.parametrize("size", [(20000, 20000), (50, 10**6), (10**6, 50), (2000, 1)])
def test_tiles_fit_into_memory(size: tuple[int, int]) -> None:
    denoiser = denoiser_for(tiny("unet"))
    halo, stride = denoiser.halo, denoiser.stride
    assert halo is not None
    plan = plan_tiles(denoiser, image(*size))
    seen = [
        align_up(min(side + 2 * halo, length), stride)  # networks pad to a multiple of the stride
        for side, length in zip(plan.tile, size, strict=True)
    ]
    assert np.prod(seen) <= denoiser.pixels_at_once()
    assert plan.rows * size[1] * 4 <= 2**28
    assert min(plan.tile[0], plan.rows) * min(plan.tile[1], size[1]) > 0


def test_a_large_halo_makes_large_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    denoiser = denoiser_for(tiny("fdncnn"))
    size = image(20000, 20000)
    usual = plan_tiles(denoiser, size).tile[0]
    monkeypatch.setattr(denoiser, "halo", usual // 3)
    tile = plan_tiles(denoiser, size).tile[0]
    assert tile >= 4 * (usual // 3) // 2, "most of what a tile sees must not be halo"


def test_denoisers_without_a_reach_see_whole_planes() -> None:
    for model in (torch.nn.Conv2d(1, 1, 3, padding=1), "median_filter"):
        plan = plan_tiles(denoiser_for(model, value_range=(0, 1)), image(5000, 5000), tile=16)
        assert plan.tile == (5000, 5000)


def test_a_wrapped_network_has_the_reach_of_the_network_inside() -> None:
    net = tiny("unet", "norm-equiv-wrapped")
    assert net.receptive_field is None
    assert denoiser_for(net).halo == net.inner.receptive_field


def test_identity_tells_weights_apart() -> None:
    one, other = tiny("fdncnn"), tiny("fdncnn")
    assert denoiser_for(one).identity == denoiser_for(one).identity
    assert denoiser_for(one).identity != denoiser_for(other).identity


def test_the_network_of_the_caller_is_left_as_it_is() -> None:
    net = tiny("unet").train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    normeq.denoise(np.eye(16), model=net)
    assert net.training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


@pytest.mark.skipif(not shipped(), reason="no weights are shipped")
def test_only_denoisers_of_shipped_models_are_kept() -> None:
    name = shipped()[0]
    assert denoiser_for(name) is denoiser_for(name)
    net = tiny("unet")
    assert denoiser_for(net) is not denoiser_for(net)


def test_memory_is_known_or_guessed() -> None:
    assert memory.available() > 2**26
