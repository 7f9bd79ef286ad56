"""What the server answers, and to whom, without a browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import tifffile
from helpers.local_requests import Reply, send

from normeq.explorer.exploration import Exploration
from normeq.explorer.local_app import PAGE, make_app
from normeq.explorer.result_file import ResultFile
from normeq.images import open_image

PORT, TOKEN = 8123, "secret-token"
HOST = ("Host", f"127.0.0.1:{PORT}")
Asking = Callable[..., Reply]


@pytest.fixture
def ask(exploration: Exploration, stack: Path) -> Iterator[Asking]:
    result = ResultFile(stack)
    app = make_app(exploration, result, stack.name, PORT, TOKEN)

    def ask(path: str, *headers: tuple[str, str], method: str = "GET", token: str = TOKEN) -> Reply:
        return send(app, f"/{token}/{path}", list(headers or [HOST]), method)

    yield ask
    result.close()


def test_the_page_and_its_files_are_served(ask: Asking) -> None:
    page = ask("")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    for name in ("main.js", "style.css", "icon.svg"):
        assert f'"{name}"'.encode() in page.body
        assert ask(name).status == 200


def test_nothing_is_fetched_from_elsewhere(ask: Asking) -> None:
    policy = ask("").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert ask("about").headers["referrer-policy"] == "no-referrer"  # it would hold the token
    for file in PAGE.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1"]
)
def test_a_foreign_host_is_refused(ask: Asking, host: str) -> None:
    reply = ask("about", ("Host", host))
    assert reply.status == 403
    assert b"127.0.0.1 and localhost alone" in reply.body


def test_a_missing_or_doubled_host_is_refused(ask: Asking) -> None:
    assert ask("about", ("Accept", "*/*")).status == 403
    assert ask("about", HOST, ("Host", "evil.example")).status == 403


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"https://127.0.0.1:{PORT}"])
def test_a_foreign_origin_is_refused(ask: Asking, origin: str, method: str) -> None:
    reply = ask("result", HOST, ("Origin", origin), method=method)
    assert reply.status == 403
    assert b"another site" in reply.body


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_the_own_origin_passes(ask: Asking, name: str) -> None:
    host = f"{name}:{PORT}"
    assert ask("about", ("Host", host), ("Origin", f"http://{host}")).status == 200


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", "static/..", "é"])
def test_nothing_is_served_without_the_token(ask: Asking, token: str) -> None:
    for path in ("", "about", "main.js"):
        reply = ask(path, token=token)
        assert reply.status == 403
        assert b"token" in reply.body


@pytest.mark.parametrize(
    "path", ["../local_app.py", "..%2flocal_app.py", "%2e%2e/__init__.py", "/etc/passwd", "no.js"]
)
def test_files_outside_the_page_are_not_served(ask: Asking, path: str) -> None:
    assert ask(path).status == 404


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("tile?frame=3", "frame is '3': it must be a whole number from 0 to 2."),
        ("tile?frame=-1", "frame is '-1'"),
        ("tile?level=2", "level is '2': it must be a whole number from 0 to 1."),
        ("tile?level=99999999999999999999", "level is"),
        ("tile?row=2", "row is '2': it must be a whole number from 0 to 1."),
        ("tile?column=1e3", "column is '1e3'"),
        ("tile?column=" + "1" * 5000, "column is 5000 characters long"),
        ("tile?of=passwd", "of is 'passwd', which is not one of the choices."),
        ("tile?of=twin&gain=0", "gain is '0': it must be a number from 0.001 to 1000."),
        ("tile?of=twin&gain=nan", "gain is 'nan'"),
        ("tile?of=twin&offset=inf", "offset is 'inf'"),
        ("tile?of=twin&sigma=-2", "sigma is '-2'"),
        ("tile?of=twin&model=os:getcwd", "model is 'os:getcwd', which is not one of the choices."),
        (
            "tile?of=twin&model=/etc/passwd",
            "model is '/etc/passwd', which is not one",
        ),
        ("tile?of=twin&model=default&sigma=x", "sigma is 'x'"),
        ("tile?of=twin&model=median_filter&sigma=2", "median_filter is blind"),
        ("filter?row=400&column=0", "row is '400': it must be a whole number from 0 to 399."),
        ("filter?row=0&column=0&channel=1", "channel is '1'"),
        ("units?row=0&column=400", "column is '400'"),
        ("noise?model=%1b[2J", "model is '?[2J', which is not one of the choices."),
        ("result/file", "there is no finished result: start one first."),
    ],
)
def test_hostile_values_get_a_sentence(ask: Asking, query: str, said: str) -> None:
    reply = ask(query)
    assert reply.status == 400
    assert said in reply.data["error"]


def test_a_tile_is_numbers_of_single_precision(ask: Asking, stack: Path) -> None:
    reply = ask("tile?frame=1&level=0&row=1&column=0")
    assert reply.headers["x-shape"] == "16,384,1"
    values = np.frombuffer(reply.body, "<f4").reshape(16, 384)
    assert np.array_equal(values, tifffile.imread(stack)[1, 384:, :384])


def test_the_answers_about_a_pixel_and_its_units(ask: Asking) -> None:
    found = ask("filter?row=40&column=50").data
    assert found["sum"] == pytest.approx(1, abs=1e-4)
    height, width = (stop - start for start, stop in (found["rows"], found["columns"]))
    assert len(found["weights"]) == height * width
    assert ask("units?gain=10&offset=500&row=40&column=50").data["follows"]
    broken = ask("units?model=ordinary&gain=0.1&row=40&column=50").data
    assert not broken["follows"]


def test_the_result_is_the_file_of_normeq_denoise(
    ask: Asking, stack: Path, exploration: Exploration, tmp_path: Path
) -> None:
    import normeq

    assert ask("result", method="POST").status == 202
    while ask("result").data["stage"] == "running":
        time.sleep(0.05)
    assert ask("result").data["stage"] == "done"
    reply = ask("result/file")
    assert reply.headers["content-disposition"] == 'attachment; filename="stack.denoised.tif"'
    model = next(iter(exploration.models))
    [outcome] = normeq.denoise_files(stack, tmp_path, model=model)
    (tmp_path / "downloaded.tif").write_bytes(reply.body)
    with tifffile.TiffFile(tmp_path / "downloaded.tif") as file:
        assert file.series[0].axes == "ZYX"
        assert np.array_equal(file.asarray(), tifffile.imread(outcome.output))


def test_a_store_comes_as_an_archive(tmp_path: Path, weights: Path) -> None:
    import zarr

    pixels = np.random.default_rng(0).normal(9, 1, (40, 40)).astype(np.float32)
    zarr.create_array(tmp_path / "image.zarr", data=pixels)
    result = ResultFile(tmp_path / "image.zarr")
    result.start(model=str(weights))
    while result.status()["stage"] == "running":
        time.sleep(0.05)
    assert result.status()["stage"] == "done", result.status()
    assert result.name == "image.denoised.zarr.zip"
    folder = result.file().parent
    result.close()
    assert not folder.exists()


def test_a_result_can_be_cancelled_and_a_bad_file_is_said(tmp_path: Path, weights: Path) -> None:
    tifffile.imwrite(tmp_path / "large.tif", np.zeros((9, 400, 400), np.uint16))
    result = ResultFile(tmp_path / "large.tif")
    result.start(model=str(weights))
    result.cancel()
    while result.status()["stage"] == "running":
        time.sleep(0.01)
    assert result.status()["said"] == "cancelled; nothing was written."
    (tmp_path / "large.tif").write_bytes(b"II*\0")
    result.start(model=str(weights))
    while result.status()["stage"] == "running":
        time.sleep(0.01)
    assert result.status()["stage"] == "failed"
    assert "large.tif" in result.status()["said"]
    result.close()


def test_a_file_whose_pixels_cannot_be_read_is_said(tmp_path: Path, weights: Path) -> None:
    path = tmp_path / "cut.tif"
    tifffile.imwrite(path, np.zeros((300, 300), np.uint16), compression="zlib")
    path.write_bytes(path.read_bytes()[:-200] + bytes(200))
    with open_image(path) as image:
        app = make_app(Exploration(image, str(weights)), ResultFile(path), path.name, PORT, TOKEN)
        reply = send(app, f"/{TOKEN}/about", [HOST])
    assert reply.status == 422
    assert "cut.tif" in reply.data["error"]
