"""`normeq denoise --cluster` on real processes: the bytes of a plain run, whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.disks import small_disk
from helpers.slow_denoisers import halved, recorded, slowly_halved
from helpers.small_networks import tiny
from helpers.stores import contents, write_ome_zarr

import normeq
from normeq import images
from normeq.denoising.file_options import FileOptions
from normeq.denoising.files import outcomes
from normeq.denoising.noise_options import NoiseOptions
from normeq.denoising.outcome import Outcome
from normeq.denoising.preparation import Choice
from normeq.denoising.walk_options import WalkOptions

pytest.importorskip("distributed")

from normeq.cluster import layout
from normeq.cluster.connection import connected
from normeq.cluster.runner import ClusterRunner

NET = tiny("unet", "norm-equiv-residual").double()
PARTIAL = ".out.zarr.partial"
pytestmark = [
    pytest.mark.xdist_group("cluster"),  # one cluster at a time
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets of processes that were killed
]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with connected("local:2") as client:
        yield client


def run(
    folder: Path,
    client: Any,
    model: Any,
    report: Callable[[float], object] = lambda share: None,
    target: str = "out.zarr",
    **options: Any,
) -> Outcome:
    """Denoise ``in.zarr`` on a cluster, or in this process if there is none."""
    how = FileOptions(runner=ClusterRunner(client), **options) if client else FileOptions(**options)
    choice = Choice(model, device="cpu")
    [outcome] = outcomes([folder / "in.zarr"], [folder / target], choice, how, report)
    return outcome


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a task have no more than one file of one plane."""
    monkeypatch.setattr(layout, "_TASK_PIXELS", 1)
    monkeypatch.setattr(layout, "_MOST_PIXELS", 1)


# The same bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "store",
    [
        {"levels": 3},
        {"shape": (2, 3, 40, 50), "chunks": (1, 3, 16, 16), "dtype": "float32"},
        {"chunks": (1, 8, 8), "shards": (1, 16, 24)},
        {"shape": (33, 90), "chunks": (33, 16), "dtype": "uint8"},
    ],
)
@pytest.mark.parametrize("divided", [True, False])
def test_a_cluster_writes_what_one_process_writes(
    tmp_path: Path, client: Any, store: Any, divided: bool, request: pytest.FixtureRequest
) -> None:
    if divided:
        request.getfixturevalue("small_tasks")
    write_ome_zarr(tmp_path / "in.zarr", **store)
    shares: list[float] = []
    outcome = run(tmp_path, client, NET, shares.append)
    plain = run(tmp_path, None, NET, target="plain.zarr")
    assert (outcome.status, outcome.error) == ("done", None)
    assert outcome.clipped == plain.clipped
    assert sum(shares) == pytest.approx(1)
    assert contents(tmp_path / "out.zarr") == contents(tmp_path / "plain.zarr")
    assert sorted(os.listdir(tmp_path)) == ["in.zarr", "out.zarr", "plain.zarr"]


def test_missing_pixels_and_maps_of_sigma(tmp_path: Path, client: Any, small_tasks: None) -> None:
    write_ome_zarr(tmp_path / "in.zarr", dtype="float32")
    import zarr

    array = zarr.open_array(tmp_path / "in.zarr/0")
    array[1, 14:20, 20:30] = np.nan  # across chunks
    levels = np.abs(np.random.default_rng(1).normal(20, 3, (48, 60)))
    zarr.create_array(tmp_path / "sigma.zarr", data=levels, chunks=(10, 10))
    net = tiny("unet", "norm-equiv", blind=False).double()
    assert "are NaN" in str(run(tmp_path, client, net, noise=NoiseOptions(20.0)).error)
    with images.open_image(tmp_path / "sigma.zarr") as sigma:
        how = {"noise": NoiseOptions(sigma), "walk": WalkOptions(nan="keep")}
        assert run(tmp_path, client, net, **how).error is None
        run(tmp_path, None, net, target="plain.zarr", **how)
    assert contents(tmp_path / "out.zarr") == contents(tmp_path / "plain.zarr")


def test_functions_see_whole_planes_and_a_line_says_so(
    tmp_path: Path, client: Any, small_tasks: None, caplog: pytest.LogCaptureFixture
) -> None:
    write_ome_zarr(tmp_path / "in.zarr", (2, 24, 30), (1, 8, 8))
    assert run(tmp_path, client, halved).error is None
    assert "sees whole planes: a task takes at least 24 x 30 pixels" in caplog.text
    run(tmp_path, None, halved, target="plain.zarr")
    assert contents(tmp_path / "out.zarr") == contents(tmp_path / "plain.zarr")


def test_the_weights_reach_each_worker_once(
    tmp_path: Path, client: Any, small_tasks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from normeq.denoising.network_denoiser import NetworkDenoiser

    sent: list[str] = []
    state = NetworkDenoiser.__getstate__

    def counted(denoiser: NetworkDenoiser) -> dict[str, Any]:
        sent.append(denoiser.name)
        return state(denoiser)

    monkeypatch.setattr(NetworkDenoiser, "__getstate__", counted)
    write_ome_zarr(tmp_path / "in.zarr")
    assert run(tmp_path, client, NET).error is None
    assert len(sent) == 1  # pickled once, for all workers and tasks
    left = client.run(lambda dask_worker: [key for key in dask_worker.plugins if "normeq" in key])
    assert list(left.values()) == [[], []]


def test_lazy_arrays_are_computed_on_a_cluster(client: Any) -> None:
    da = pytest.importorskip("dask.array")
    image = 100 + np.random.default_rng(0).normal(0, 5, (2, 60, 70))
    lazy = normeq.denoise(da.from_array(image, chunks=(1, 25, 30)), model=NET)
    expected = normeq.denoise(image, model=NET)
    np.testing.assert_allclose(client.compute(lazy).result(), expected, rtol=0, atol=5e-6)


# Faults --------------------------------------------------------------------------------------


class Disturbed:
    """Does something once, when a number of tasks are finished."""

    def __init__(self, after: int, disturb: Callable[[], object]) -> None:
        self._left = after
        self._disturb = disturb

    def __call__(self, share: float) -> None:
        self._left -= share > 0
        if self._left == 0:
            self._disturb()


def test_a_killed_worker_costs_its_running_tasks_only(
    tmp_path: Path, client: Any, small_tasks: None
) -> None:
    write_ome_zarr(tmp_path / "in.zarr", (12, 24, 24), (1, 24, 24), levels=2)
    victim = next(iter(client.run(os.getpid).values()))
    model = partial(recorded, tmp_path / "calls.txt")
    outcome = run(tmp_path, client, model, Disturbed(3, lambda: os.kill(victim, 9)))
    assert outcome.error is None
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    # All planes, the one that the worker was at, and one that it had finished but not reported.
    assert len(calls) <= 12 + 2
    run(tmp_path, None, model, target="plain.zarr")
    assert contents(tmp_path / "out.zarr") == contents(tmp_path / "plain.zarr")
    client.wait_for_workers(2)  # another one has taken its place


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "256k") as folder:
        yield folder


def test_a_full_disk_is_a_sentence(
    tmp_path: Path, client: Any, small_disk: Path, small_tasks: None
) -> None:
    write_ome_zarr(tmp_path / "in.zarr", (12, 256, 256), (1, 256, 256))
    outcome = run(tmp_path, client, halved, target="small/out.zarr")
    assert "cannot be written (No space left on device)" in str(outcome.error)
    assert os.listdir(small_disk) == [PARTIAL]


def test_a_disk_that_becomes_read_only_is_a_sentence(
    tmp_path: Path, client: Any, small_disk: Path, small_tasks: None
) -> None:
    write_ome_zarr(tmp_path / "in.zarr", (12, 24, 24), (1, 24, 24))
    chunks = small_disk / PARTIAL / "0/c"
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(chunks)]
    disturbed = Disturbed(2, lambda: subprocess.run(mount, check=True))
    outcome = run(tmp_path, client, slowly_halved, disturbed, target="small/out.zarr")
    subprocess.run(["umount", "--lazy", str(chunks)], check=True)
    assert "cannot be written (Read-only file system)" in str(outcome.error)
    assert os.listdir(small_disk) == [PARTIAL]


def test_only_zarr_folders_go_to_a_cluster(tmp_path: Path) -> None:
    images.write(tmp_path / "in.tif", np.zeros((16, 16), "uint16"))
    write_ome_zarr(tmp_path / "in.zarr", (16, 16), (16, 16))
    how = FileOptions(runner=ClusterRunner(None))  # type: ignore[arg-type]
    for path, target in (("in.tif", "out.tif"), ("in.zarr", "out.tif")):
        [outcome] = outcomes([tmp_path / path], [tmp_path / target], Choice(NET), how)
        assert "is not a Zarr folder" in str(outcome.error)
    walk = WalkOptions(bayer="RGGB")
    how = FileOptions(runner=ClusterRunner(None), walk=walk)  # type: ignore[arg-type]
    [outcome] = outcomes([tmp_path / "in.zarr"], [tmp_path / "out.zarr"], Choice(NET), how)
    assert "mosaics cannot be denoised on a cluster" in str(outcome.error)


def environment() -> dict[str, str]:
    """Let another process import what this one can."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.mark.slow
def test_a_lost_scheduler_is_a_sentence_and_a_second_run_resumes(
    tmp_path: Path, client: Any, small_tasks: None
) -> None:
    write_ome_zarr(tmp_path / "in.zarr", (12, 24, 24), (1, 24, 24), levels=2)
    about = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
    command += ["--no-dashboard", "--scheduler-file", str(about)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(about)]
    worker += ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60"]
    how: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment()}
    with subprocess.Popen(command, **how) as scheduler, subprocess.Popen(worker, **how) as one:
        try:
            while not about.exists():
                time.sleep(0.1)
            import json

            with connected(json.loads(about.read_text())["address"]) as lost:
                lost.wait_for_workers(1)
                outcome = run(tmp_path, lost, slowly_halved, Disturbed(4, scheduler.kill))
        finally:
            scheduler.kill()
            one.kill()
    assert "the connection to the scheduler of the cluster was lost" in str(outcome.error)
    assert "same command again" in str(outcome.error)
    assert not (tmp_path / "out.zarr").exists()
    check_resumed(tmp_path, client)


@pytest.mark.slow
def test_after_ctrl_c_a_second_run_resumes(tmp_path: Path, client: Any) -> None:
    write_ome_zarr(tmp_path / "in.zarr", (60, 512, 512), (1, 512, 512), levels=2)
    command = [sys.executable, "-m", "normeq", "denoise", "in.zarr", "-o", "out.zarr"]
    command += ["--model", "helpers.slow_denoisers:slow", "--cluster", "local:1"]
    journal = tmp_path / PARTIAL / ".normeq-finished"
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as process:
        while not (journal.exists() and len(journal.read_text().splitlines()) > 1):
            assert process.poll() is None
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "run it again" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out.zarr").exists()
    check_resumed(tmp_path, client, "helpers.slow_denoisers:slow")


def check_resumed(folder: Path, client: Any, model: Any = slowly_halved) -> None:
    """Run again, and find that finished chunks were not made again."""
    finished = {
        file: file.stat().st_mtime_ns
        for file in (folder / PARTIAL / "0").rglob("*")
        if file.is_file()
    }
    places = (folder / PARTIAL / ".normeq-finished").read_text().splitlines()[1:]
    outcome = run(folder, client, model)
    assert (outcome.error, outcome.resumed) == (None, True)
    untouched = [
        file
        for file, when in finished.items()
        if (folder / "out.zarr" / file.relative_to(folder / PARTIAL)).stat().st_mtime_ns == when
    ]
    assert len(untouched) >= len([place for place in places if place.endswith("done")])
    run(folder, None, model, target="plain.zarr")
    assert contents(folder / "out.zarr") == contents(folder / "plain.zarr")
