"""`normeq denoise --cluster`: what it prints, and what it says when it cannot work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers.stores import contents, write_ome_zarr
from typer.testing import CliRunner

from normeq.cli import app
from normeq.cluster import connection

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.xdist_group("cluster"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def denoise(folder: Path, *words: str, target: str = "out.zarr") -> tuple[int, str]:
    write_ome_zarr(folder / "in.zarr", levels=2)
    command = ["denoise", str(folder / "in.zarr"), "-o", str(folder / target)]
    result = CliRunner().invoke(app, [*command, "--model", "median_filter", *words])
    return result.exit_code, result.output


def test_the_command_prints_where_the_cluster_can_be_watched(tmp_path: Path) -> None:
    code, said = denoise(tmp_path, "--cluster", "local:1")
    assert code == 0
    assert "cluster dashboard: http://127.0.0.1:" in said
    assert "out.zarr" in said
    denoise(tmp_path, target="plain.zarr")
    assert contents(tmp_path / "out.zarr") == contents(tmp_path / "plain.zarr")


def test_a_dry_run_starts_no_cluster(tmp_path: Path) -> None:
    code, said = denoise(tmp_path, "--cluster", "tcp://127.0.0.1:1", "--dry-run")
    assert (code, "dashboard" in said) == (0, False)


def test_an_address_where_nobody_answers_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PATIENCE", "1s")
    code, said = denoise(tmp_path, "--cluster", "tcp://127.0.0.1:1")
    assert code == 2
    assert "no dask scheduler answers at 'tcp://127.0.0.1:1'" in said


@pytest.mark.parametrize("address", ["nonsense", "local:0", "ftp://somewhere"])
def test_what_is_no_address_is_a_sentence(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PATIENCE", "1s")
    code, said = denoise(tmp_path, "--cluster", address)
    assert code == 2
    assert address in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("failures", "expected"), [(2, 0), (3, 2)])
def test_an_event_loop_that_starts_too_late_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, expected: int
) -> None:
    from distributed.utils import LoopRunner

    start, starts = LoopRunner.start, []

    def too_late_at_first(runner: LoopRunner) -> None:
        starts.append(runner)
        assert len(starts) > failures
        start(runner)

    monkeypatch.setattr(LoopRunner, "start", too_late_at_first)
    code, said = denoise(tmp_path, "--cluster", "local:1")
    assert code == expected
    assert ("did not start in 3 attempts" in said) == (expected == 2)


def test_without_the_extra_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, said = denoise(tmp_path, "--cluster", "local")
    assert code == 2
    assert "pip install 'normeq[dask]'" in said
