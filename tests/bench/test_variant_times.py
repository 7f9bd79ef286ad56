from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from normeq.bench import Case, denoise_parts, measure, multiply_adds
from normeq.bench.table import read_timings, write_timings
from normeq.bench.variant_times import _interleaved, _ratio, build, cases
from normeq.models import create
from normeq.nn import AffineConv2d, AffineResidual, SortPool

TINY = {"batch": 1, "size": 16, "rounds": 3, "widths": (4, 6), "blocks": 1}


@pytest.mark.parametrize("job", ["inference", "training"])
def test_every_variant_is_compared_with_the_fastest_scale_equivariant_one(job: str) -> None:
    timings = measure("unet", job, **TINY)
    fast = {t.variant: t for t in timings if t.path == "fast"}
    assert {"ordinary", "norm-equiv", "norm-equiv-residual", "norm-equiv-wrapped"} < fast.keys()
    assert {"affine only", "sort only"} < fast.keys()
    baselines = [t for t in timings if t.variant == "scale-equiv"]
    assert {(t.path, t.layout) for t in baselines} == {
        ("fast", "contiguous"),
        ("fast", "channels_last"),
    }
    fastest = min(baselines, key=lambda t: t.seconds)
    assert (fastest.ratio, fastest.spread) == (1, 0)
    assert all(t.seconds > 0 and t.peak_share > 0 for t in timings)


def test_a_ratio_is_that_of_the_typical_round() -> None:
    # A machine that is busy for three rounds slows both; in one round it slows one of them.
    baseline = [1.0, 1.0, 3.0, 3.0, 3.0]
    assert _ratio([1.1, 1.1, 3.3, 3.3, 9.9], baseline) == pytest.approx((1.1, 0))
    assert _ratio([1.0, 1.1, 3.6, 3.9, 4.2], baseline) == pytest.approx((1.2, 0.1))
    assert _ratio([2.0], [1.0]) == (2, 0)


@pytest.mark.parametrize(("rounds", "seconds", "expected"), [(1, 5, 5), (7, 5, 7), (2, 0, 2)])
def test_small_networks_run_for_as_many_rounds_as_the_time_allows(
    monkeypatch: pytest.MonkeyPatch, rounds: int, seconds: float, expected: int
) -> None:
    ticks: list[None] = []
    monkeypatch.setattr("normeq.bench.variant_times.time.monotonic", lambda: len(ticks))
    [times] = _interleaved([lambda: ticks.append(None)], rounds, seconds, lambda _: None)
    assert len(times) == expected


def test_compiled_networks_have_a_baseline_of_their_own() -> None:
    compiled = [c for c in cases("unet", "inference", compiled=True) if c.path == "compiled"]
    assert {(c.variant, c.layout) for c in compiled} == {
        (variant, layout)
        for variant in ("scale-equiv", "norm-equiv")
        for layout in ("contiguous", "channels_last")
    }


def test_the_grid_of_the_paper() -> None:
    grid = {
        "scale-equiv": (False, False, False, True),
        "affine only": (True, True, False, True),
        "sort only": (False, False, True, False),
        "norm-equiv": (True, True, True, False),
    }
    assert grid.keys() <= {case.variant for case in cases("unet", "training")}
    for variant, expected in grid.items():
        net = build(Case("unet", variant, "training", "as built"), {"widths": (4, 6), "blocks": 1})
        kinds = (AffineConv2d, AffineResidual, SortPool, nn.ReLU)
        found = tuple(any(isinstance(m, kind) for m in net.modules()) for kind in kinds)
        assert found == expected, variant


def test_multiply_adds_of_known_networks() -> None:
    # 3x3 kernels: 1 to 8 channels, 8 to 8, 8 to 1.
    assert multiply_adds(create("fdncnn", width=8, depth=3)) == 9 * (8 + 64 + 8)
    assert multiply_adds(nn.ConvTranspose2d(1, 3, 2, stride=2)) == 12


def test_networks_measured_before_stay_in_the_table(tmp_path: Path) -> None:
    unet = measure("unet", "inference", **TINY)
    fdncnn = measure("fdncnn", "inference", batch=1, size=16, rounds=1, width=4, depth=3)
    write_timings(tmp_path, unet)
    write_timings(tmp_path, fdncnn)
    write_timings(tmp_path, unet[:1])
    kept = read_timings(tmp_path / "speed.csv")
    assert [t.network for t in kept] == ["fdncnn"] * len(fdncnn) + ["unet"]
    assert kept[-1].variant == unet[0].variant
    assert kept[-1].seconds == pytest.approx(unet[0].seconds, rel=1e-3)
    assert kept[-1].batch == 1


def test_a_table_of_another_version_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "speed.csv").write_text("network,seconds\nunet,1\n")
    assert read_timings(tmp_path / "speed.csv") == []


def test_parts_of_denoising_a_file() -> None:
    parts = {
        part.part: part.seconds_per_megapixel for part in denoise_parts("gaussian_filter", 64, 1)
    }
    assert parts.keys() == {"decode", "network", "encode", "command", "start-up"}
    inside = sum(seconds for part, seconds in parts.items() if part != "command")
    assert parts["command"] == pytest.approx(inside)
