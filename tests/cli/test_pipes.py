from __future__ import annotations

import io

import numpy as np
import pytest
from click.testing import Result
from helpers.image_samples import sample
from PIL import Image
from typer.testing import CliRunner

import normeq
from normeq.cli import app


def pipe(data: bytes, *options: str) -> Result:
    command = ["denoise", "-", "--model", "median_filter", *options]
    return CliRunner().invoke(app, command, input=data)


def encoded(image: np.ndarray, kind: str) -> bytes:
    stream = io.BytesIO()
    if kind == "npy":
        np.save(stream, image)
    else:
        Image.fromarray(image).save(stream, "png")
    return stream.getvalue()


@pytest.mark.parametrize(("kind", "dtype"), [("npy", "float32"), ("png", "uint8")])
def test_standard_input_becomes_standard_output(kind: str, dtype: str) -> None:
    image = sample((24, 20), dtype)
    result = pipe(encoded(image, kind))
    assert result.exit_code == 0, result.stderr
    stream = io.BytesIO(result.stdout_bytes)
    denoised = np.load(stream) if kind == "npy" else np.asarray(Image.open(stream))
    np.testing.assert_array_equal(denoised, normeq.denoise(image, model="median_filter"))
    assert "standard input -> standard output" in result.stderr
    assert pipe(encoded(image, kind), "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("data", "options", "code", "sentence"),
    [
        (b"II*\0", [], 2, "neither NPY nor PNG"),
        (b"", [], 2, "neither NPY nor PNG"),
        (encoded(sample((8, 8), "uint8"), "png")[:60], [], 1, "standard input"),
        (b"", ["other.png"], 2, "leave out other inputs"),
        (b"", ["-o", "out.png"], 2, "leave out other inputs"),
        (b"", ["--json"], 2, "leave out other inputs"),
    ],
)
def test_what_cannot_be_piped_is_a_sentence(
    data: bytes, options: list[str], code: int, sentence: str
) -> None:
    result = pipe(data, *options)
    assert result.exit_code == code, result.output
    assert sentence in result.stderr
    assert result.stdout_bytes == b""
    assert len(result.stderr.splitlines()) == 1
