"""Stores at an address: those of a server on this machine, and fsspec's file system in memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from helpers.image_samples import sample
from typer.testing import CliRunner

from normeq import denoise_files, images
from normeq.cli import app
from normeq.errors import FileError, InputError, UsageError
from normeq.images import open_image

pytest.importorskip("aiohttp", reason="needs the remote extra")

STACK = sample((3, 20, 24), "uint16")


class Quiet(SimpleHTTPRequestHandler):
    """A server that notes what it is asked for, and lists no folder."""

    asked: list[str]

    def log_message(self, *about: Any) -> None:
        return

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()

    def list_directory(self, path: Any) -> None:
        self.send_error(404)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """Give an address, the folder that is served there, and what was asked for."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = type("Handler", (Quiet,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=folder)) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}", folder, handler.asked
        finally:
            http.shutdown()
            thread.join()


def write_ome(store: Any, version: Any = 2) -> None:
    group = zarr.create_group(store, zarr_format=version, overwrite=True)
    scale = {"type": "scale", "scale": [1.5, 0.2, 0.2]}
    axes = [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
    datasets = [{"path": "0", "coordinateTransformations": [scale]}, {"path": "1"}]
    about = {"multiscales": [{"axes": axes, "datasets": datasets}]}
    group.attrs.update(about if version == 2 else {"ome": about})
    group.create_array("0", data=STACK, chunks=(1, 10, 24))
    group.create_array("1", data=STACK[:, ::2, ::2], chunks=(1, 10, 12))


@pytest.mark.parametrize("version", [2, 3])
def test_a_store_on_a_server_is_denoised(
    tmp_path: Path, server: tuple[str, Path, list[str]], version: Any
) -> None:
    address, folder, _ = server
    write_ome(folder / "in.zarr", version)
    target = tmp_path / "out.zarr"
    [outcome] = denoise_files(f"{address}/in.zarr", target, model=lambda plane: plane / 2)
    assert outcome.status == "done", outcome.error
    assert outcome.input == f"{address}/in.zarr"
    np.testing.assert_array_equal(images.read(target), np.rint(STACK / 2))
    with open_image(target) as source:
        assert source.calibration.sizes == {"Z": 1.5, "Y": 0.2, "X": 0.2}
    attributes = dict(zarr.open_group(target).attrs)
    assert attributes["normeq"]["input"] == "in.zarr"


def test_only_the_chunks_that_are_needed_are_fetched(server: tuple[str, Path, list[str]]) -> None:
    address, folder, asked = server
    zarr.create_array(folder / "in.zarr", data=STACK, chunks=(1, 10, 24))
    with open_image(f"{address}/in.zarr") as source:
        rows = source.read(1, 0, 10)[..., 0]
    np.testing.assert_array_equal(rows, STACK[1, :10])
    assert [path for path in asked if "/c/" in path] == ["/in.zarr/c/1/0/0"]


def test_a_store_in_memory_is_read_and_described() -> None:
    write_ome("memory://cells/in.zarr")
    np.testing.assert_array_equal(images.read("memory://cells/in.zarr"), STACK)
    run = CliRunner().invoke(app, ["info", "memory://cells/in.zarr"])
    assert run.exit_code == 0, run.output
    assert "3 x 20 x 24" in run.stdout
    assert "X 0.2 µm" in run.stdout


def test_other_arrays_are_named_as_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_ome("memory://cells/in.zarr")
    with caplog.at_level(logging.WARNING):
        denoise_files("memory://cells/in.zarr", tmp_path / "out.zarr", model=lambda plane: plane)
    assert "are not copied" in caplog.text


def test_an_address_without_a_store_is_a_sentence(server: tuple[str, Path, list[str]]) -> None:
    with pytest.raises(FileError, match="cannot be read as Zarr"):
        open_image(f"{server[0]}/nothing.zarr")
    with pytest.raises(FileError, match="cannot be read as Zarr"):
        open_image("http://127.0.0.1:9/nothing.zarr")  # where nobody listens
    with pytest.raises(FileError, match="Protocol not known: nonsense"):
        open_image("nonsense://host/a.zarr")


def test_levels_outside_of_the_store_are_refused() -> None:
    write_ome("memory://cells/hostile.zarr")
    group = zarr.open_group("memory://cells/hostile.zarr", mode="r+")
    image = dict(group.attrs)["multiscales"]
    image[0]["datasets"][0]["path"] = "../in.zarr/0"
    group.attrs["multiscales"] = image
    with pytest.raises(InputError, match="not inside it"):
        open_image("memory://cells/hostile.zarr")


def test_what_cannot_be_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only Zarr stores are read from an address"):
        open_image("https://example.org/a.tif")
    for address in ("https://me:secret@example.org/a.zarr", "https://example.org/a.zarr?key=1"):
        with pytest.raises(UsageError, match="must not contain a password or a query") as error:
            open_image(address)
        assert "secret" not in str(error.value)
    with pytest.raises(UsageError, match="without file://"):
        open_image("file:///tmp/a.zarr")
    write_ome("memory://cells/in.zarr")
    with pytest.raises(UsageError, match="say with --output where to write"):
        denoise_files("memory://cells/in.zarr")
    images.write(tmp_path / "a.npy", STACK)
    with pytest.raises(UsageError, match="not to addresses"):
        denoise_files(tmp_path / "a.npy", "memory://cells/out.zarr")


def test_the_extra_is_named_where_a_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: Any, **options: Any) -> Any:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(zarr.storage.FsspecStore, "from_url", missing)
    with pytest.raises(InputError, match=r"normeq\[remote\].*Install s3fs"):
        open_image("s3://bucket/a.zarr")
