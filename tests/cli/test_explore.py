from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from helpers.image_samples import sample
from typer.testing import CliRunner

from normeq.cli import app
from normeq.images import write


@pytest.fixture
def image(tmp_path: Path) -> Path:
    write(tmp_path / "a.tif", sample((400, 450), "uint16"))
    return tmp_path / "a.tif"


def said(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["explore", *map(str, words)])
    return result.exit_code, result.output


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_the_page_is_served_until_a_signal_ends_it(image: Path, weights: Path) -> None:
    command = [sys.executable, "-m", "normeq", "explore", image, "--model", weights, "--no-browser"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    line = running.stdout.readline()
    assert line.startswith("a.tif is shown at http://127.0.0.1:")
    address = line.split()[-1]
    with urlopen(address) as page:
        assert b"normeq" in page.read()
    with urlopen(f"{address}tile?of=twin") as tile:
        assert tile.headers["X-Shape"] == "384,384,1"
    where = urlsplit(address)
    waiting = HTTPConnection(where.netloc)
    waiting.request("GET", f"{where.path}tile?of=twin&model=wnnm&sigma=20")  # takes minutes
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    _, error = running.communicate(timeout=120)
    waiting.close()
    assert running.returncode == 130, error
    assert error.startswith("normeq: stopped; ")
    assert "see the page again" in error
    assert "Traceback" not in error


def test_what_cannot_be_shown_is_refused_at_once(image: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.tif").write_bytes(b"II*\0")
    code, text = said(tmp_path / "bad.tif", "--no-browser")
    assert code == 1
    assert "bad.tif" in text
    code, text = said(image, "--model", "bm3", "--no-browser")
    assert code == 2
    assert "Did you mean 'bm3d'?" in text


def test_a_port_that_is_taken_is_said(image: Path, weights: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, text = said(image, "--model", weights, "--port", port, "--no-browser")
    assert code == 2
    assert f"cannot listen on port {port}" in text


def test_the_extra_is_named_where_it_is_missing(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "normeq.explorer.serving", raising=False)
    code, text = said(image, "--no-browser")
    assert code == 2
    assert "normeq explore needs uvicorn: pip install 'normeq[web]'." in text
