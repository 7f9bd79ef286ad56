"""How the work is cut, and what tells one denoiser from another."""

import numpy as np
import pytest
import torch
from support import tiny

import normeq
from normeq._support import memory
from normeq.denoising.arrays import ArraySource
from normeq.denoising.denoiser import Engine, engine_for
from normeq.models import shipped


def image(height: int, width: int) -> ArraySource:
    # One number, seen as an image of any size: nothing is stored.
    return ArraySource(np.broadcast_to(np.float32(0), (3, height, width)), "ZYX")


@pytest.fixture
def scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 2**26)


def test_what_fits_is_processed_whole_and_in_batches() -> None:
    plan = Engine(tiny("unet")).plan(image(200, 300))
    assert plan.tile == (200, 300)
    assert plan.rows == 200
    assert plan.frames > 1


@pytest.mark.usefixtures("scarce")
@pytest.mark.parametrize("size", [(20000, 20000), (50, 10**6), (10**6, 50), (2000, 1)])
def test_tiles_fit_into_memory(size: tuple[int, int]) -> None:
    engine = Engine(tiny("unet"))
    halo = engine.halo
    assert halo is not None
    plan = engine.plan(image(*size))
    seen = [min(side + 2 * halo, length) for side, length in zip(plan.tile, size, strict=True)]
    assert np.prod(seen) <= engine._pixels_at_once()
    assert plan.rows * size[1] * 4 <= 2**28
    assert min(plan.tile[0], plan.rows) * min(plan.tile[1], size[1]) > 0


def test_a_large_halo_makes_large_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(tiny("fdncnn"))
    size = image(20000, 20000)
    usual = engine.plan(size).tile[0]
    monkeypatch.setattr(engine, "halo", usual // 3)
    tile = engine.plan(size).tile[0]
    assert tile >= 4 * (usual // 3) // 2, "most of what a tile sees must not be halo"


def test_denoisers_without_a_reach_see_whole_planes() -> None:
    for model in (torch.nn.Conv2d(1, 1, 3, padding=1), "median_filter"):
        plan = Engine(model, value_range=(0, 1), tile=16).plan(image(5000, 5000))
        assert plan.tile == (5000, 5000)


def test_a_wrapped_network_has_the_reach_of_the_network_inside() -> None:
    net = tiny("unet", "norm-equiv-wrapped")
    assert net.receptive_field is None
    assert Engine(net).halo == net.inner.receptive_field


def test_identity_tells_weights_and_options_apart() -> None:
    one, other = tiny("fdncnn", "ordinary"), tiny("fdncnn", "ordinary")
    assert Engine(one, value_range=(0, 1)).identity == Engine(one, value_range=(0, 1)).identity
    assert Engine(one, value_range=(0, 1)).identity != Engine(other, value_range=(0, 1)).identity
    assert Engine(one, value_range=(0, 1)).identity != Engine(one, value_range=(0, 2)).identity


def test_the_network_of_the_caller_is_left_as_it_is() -> None:
    net = tiny("unet").train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    normeq.denoise(np.eye(16), model=net)
    assert net.training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


@pytest.mark.skipif(not shipped(), reason="no weights are shipped")
def test_only_engines_of_shipped_models_are_kept() -> None:
    options = {"device": "cpu", "tile": None, "value_range": None}
    name = shipped()[0]
    assert engine_for(name, **options) is engine_for(name, **options)
    net = tiny("unet")
    assert engine_for(net, **options) is not engine_for(net, **options)


def test_memory_is_known_or_guessed() -> None:
    assert memory.available() > 2**26
