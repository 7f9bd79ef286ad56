import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from astropy.io import fits
from click.testing import Result
from helpers.image_samples import sample
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file
from typer.testing import CliRunner

import normeq
from normeq import images
from normeq.cli import app

Call = Callable[..., Result]


@pytest.fixture
def call(weights: Path) -> Call:
    def invoke(*arguments: object, model: object = weights) -> Result:
        words = ["denoise", *(str(argument) for argument in arguments), "--model", str(model)]
        return CliRunner().invoke(app, words)

    return invoke


def test_a_file_becomes_the_same_file_with_other_pixels(
    tmp_path: Path, call: Call, weights: Path
) -> None:
    image = sample((2, 3, 24, 20), "uint16")
    tifffile.imwrite(tmp_path / "in.tif", image, imagej=True, metadata={"axes": "TZYX"})
    result = call(tmp_path / "in.tif")
    assert result.exit_code == 0, result.output
    assert "TZYX uint16, 6 planes" in result.stdout
    with tifffile.TiffFile(tmp_path / "in.denoised.tif") as after:
        assert after.series[0].axes == "TZYX"
        expected = normeq.denoise(image, model=str(weights))
        # Batches of another size may round the last bit of a float otherwise.
        assert np.abs(after.asarray().astype(int) - expected).max() <= 1


@pytest.mark.parametrize(
    ("option", "chosen"), [("--noise=gaussian", "default"), ("--gain=2", "default-real")]
)
def test_the_line_of_a_file_names_the_network_that_was_chosen(
    tmp_path: Path, call: Call, option: str, chosen: str
) -> None:
    images.write(tmp_path / "in.tif", sample((24, 20), "float32"))
    result = call(tmp_path / "in.tif", option, model="default")
    assert f"(YX float32, 1 plane, {chosen}, " in result.stdout


def test_an_ensemble_is_asked_for_by_its_size(tmp_path: Path, call: Call, weights: Path) -> None:
    image = sample((24, 20), "float32")
    images.write(tmp_path / "in.tif", image)
    assert call(tmp_path / "in.tif", "--ensemble", "8").exit_code == 0
    after = images.read(tmp_path / "in.denoised.tif")
    expected = normeq.denoise(image, model=str(weights), ensemble=8)
    np.testing.assert_allclose(after, expected, rtol=1e-4)
    assert call(tmp_path / "in.tif", "--ensemble", "3").exit_code == 2


def test_many_files_one_of_them_bad(tmp_path: Path, call: Call) -> None:
    for name in ("a.png", "b.png"):
        images.write(tmp_path / name, sample((16, 16), "uint8"))
    (tmp_path / "bad.tif").write_bytes(b"nothing")
    result = call(tmp_path, "-o", tmp_path / "out", "--json")
    assert result.exit_code == 1
    summary = json.loads(result.stdout)
    assert (summary["done"], summary["skipped"], summary["failed"]) == (2, 0, 1)
    assert [file["status"] for file in summary["files"]] == ["done", "done", "failed"]
    assert summary["files"][0]["axes"] == "YX"
    assert len(result.stderr.strip().splitlines()) == 1
    assert "bad.tif" in result.stderr
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["a.png", "b.png"]


def test_existing_outputs(tmp_path: Path, call: Call) -> None:
    images.write(tmp_path / "a.png", sample((16, 16), "uint8"))
    assert call(tmp_path / "a.png").exit_code == 0
    refused = call(tmp_path / "a.png")
    assert refused.exit_code == 1
    assert "--overwrite" in refused.stderr
    skipped = call(tmp_path / "a.png", "--skip-existing")
    assert skipped.exit_code == 0
    assert "skipped" in skipped.stdout
    assert call(tmp_path / "a.png", "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--sigma", "3"], "is blind"),
        (["--tile", "0"], "tile is 0"),
        (["--device", "abacus"], "abacus"),
        (["-o", "out.mrc"], "cannot be written in this format"),
        (["--overwrite", "--skip-existing"], "contradict"),
        (["--nan", "maybe"], "maybe"),
    ],
)
def test_a_call_that_cannot_work_ends_with_2(
    tmp_path: Path, call: Call, arguments: list[str], sentence: str
) -> None:
    tifffile.imwrite(tmp_path / "a.tif", sample((16, 16), "uint8"))
    result = call(tmp_path / "a.tif", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("model", ["nothing", "nowhere:nothing"])
def test_a_model_that_does_not_exist_is_a_sentence(tmp_path: Path, call: Call, model: str) -> None:
    result = call(tmp_path, model=model)
    assert result.exit_code == 2
    assert result.stderr.startswith("normeq: ")


def test_axes_and_pixel_budget(tmp_path: Path, call: Call) -> None:
    np.save(tmp_path / "a.npy", sample((24, 20, 3), "float32"))
    refused = call(tmp_path / "a.npy", "--max-pixels", 100, "--axes", "YXC")
    assert refused.exit_code == 1
    assert "--max-pixels" in refused.stderr
    named = call(tmp_path / "a.npy", "--axes", "YXC")
    assert "YXC float32, 3 planes" in named.stdout


def test_missing_pixels(tmp_path: Path, call: Call) -> None:
    image = sample((24, 20), "float32")
    image[3, 4] = np.nan
    np.save(tmp_path / "a.npy", image)
    refused = call(tmp_path / "a.npy")
    assert refused.exit_code == 1
    assert "--nan keep" in refused.stderr
    assert call(tmp_path / "a.npy", "--nan", "keep").exit_code == 0
    np.testing.assert_array_equal(np.isnan(np.load(tmp_path / "a.denoised.npy")), np.isnan(image))


@pytest.mark.parametrize(
    "image",
    [
        sample((40, 60), "uint16"),
        sample((20, 30, 3), "uint8"),
        sample((3, 1, 700), "uint8"),
        sample((1500, 40), "uint8"),
        np.zeros((8, 8), np.uint8),
    ],
    ids=["gray", "colour", "line", "tall", "constant"],
)
def test_a_preview_shows_both_and_what_was_removed(
    tmp_path: Path, call: Call, image: np.ndarray[Any, Any]
) -> None:
    images.write(tmp_path / "a.tif", image)
    result = call(tmp_path / "a.tif", "--preview", "--json")
    assert result.exit_code == 0, result.output
    [file] = json.loads(result.stdout)["files"]
    with Image.open(file["preview"]) as preview:
        assert preview.mode == ("RGB" if image.shape[-1] == 3 else "L")
        panels = np.asarray(preview)
        assert panels.shape[1] >= 3 * 320
        assert panels.std() > 10


def test_a_folder_says_which_files_are_not_images(tmp_path: Path, call: Call) -> None:
    images.write(tmp_path / "a.png", sample((16, 16), "uint8"))
    for name in ("notes.txt", "table.csv", ".hidden", "a.denoised.png"):
        (tmp_path / name).write_text("text")
    result = call(tmp_path, "--skip-existing")
    assert result.exit_code == 0, result.output
    assert result.stderr.endswith("skipped files that are not images: notes.txt, table.csv\n")
    assert call(tmp_path, "--skip-existing", "--quiet").output == ""


def test_a_dry_run_writes_nothing(tmp_path: Path, call: Call) -> None:
    for name in ("a.png", "b.png"):
        images.write(tmp_path / name, sample((16, 16), "uint8"))
    (tmp_path / "bad.tif").write_bytes(b"nothing")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/b.png").touch()
    result = call(tmp_path, "-o", tmp_path / "out", "--dry-run", "--skip-existing", "--preview")
    assert result.exit_code == 1
    planned, skipped = result.stdout.splitlines()
    assert planned.endswith("a.png (YX uint8, 1 plane, planned)")
    assert skipped.endswith("b.png exists")
    assert "bad.tif" in result.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.png"]


def test_quiet_leaves_errors_and_verbose_adds_messages(tmp_path: Path, call: Call) -> None:
    images.write(tmp_path / "a.png", sample((16, 16), "uint8"))
    assert call(tmp_path / "a.png", "--quiet").output == ""
    refused = call(tmp_path / "a.png", "--quiet")
    assert refused.exit_code == 1
    assert "--overwrite" in refused.stderr
    image = sample((16, 16), "float32")
    fits.HDUList([fits.PrimaryHDU(image), fits.ImageHDU(image)]).writeto(tmp_path / "a.fits")
    assert "HDUs that are denoised" not in call(tmp_path / "a.fits").stderr
    assert "HDUs that are denoised" in call(tmp_path / "a.fits", "--overwrite", "-v").stderr
    assert call(tmp_path / "a.fits", "-q", "-v").exit_code == 2


def test_the_help_says_that_a_factory_runs_code() -> None:
    told = CliRunner().invoke(app, ["denoise", "--help"]).stdout
    assert "runs code from the working directory" in " ".join(told.replace("│", " ").split())


# What is not finite is an error ---------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(
    tmp_path: Path, call: Call, weights: Path, value: float
) -> None:
    with safe_open(weights, "pt") as file:
        about = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    tensors["tail.weight"][0] = value
    save_file(tensors, tmp_path / "bad.safetensors", about)
    np.save(tmp_path / "a.npy", sample((16, 16), "float32"))
    result = call(tmp_path / "a.npy", model=tmp_path / "bad.safetensors")
    assert result.exit_code == 1
    assert "'tail.weight' contains NaN or infinite" in result.stderr
    assert not (tmp_path / "a.denoised.npy").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--sigma", "1e300"], 1, "NaN or infinite"),
        (["--sigma", "1e308", "--strength", "100"], 1, "NaN or infinite"),
        (["--sigma", "nan"], 2, "sigma"),
        (["--sigma", "inf"], 2, "sigma"),
        (["--sigma", "5", "--strength", "nan"], 2, "strength"),
        (["--sigma", "5", "--strength", "inf"], 2, "strength"),
        (["--gain", "nan", "--read-noise", "1"], 2, "finite numbers"),
        (["--gain", "1", "--read-noise", "inf"], 2, "finite numbers"),
    ],
)
def test_noise_that_is_not_finite_is_refused(
    tmp_path: Path, call: Call, arguments: list[str], code: int, sentence: str
) -> None:
    np.save(tmp_path / "a.npy", sample((16, 16), "float32"))
    result = call(tmp_path / "a.npy", *arguments, model="default")
    assert result.exit_code == code, result.output
    assert sentence in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "a.denoised.npy").exists()


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_results_that_are_not_finite_are_not_written(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    (tmp_path / f"broken_{value}.py").write_text(
        f"def make():\n    return lambda plane: plane * float('{value}')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    np.save(tmp_path / "a.npy", 1 + sample((16, 16), "uint16"))
    result = call(tmp_path / "a.npy", model=f"broken_{value}:make")
    assert result.exit_code == 1
    assert "NaN or infinite in plane 0" in result.stderr
    assert not (tmp_path / "a.denoised.npy").exists()
