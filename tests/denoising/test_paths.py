from pathlib import Path

import numpy as np
import pytest
import zarr

from normeq.denoising.paths import beside, expand, output_paths, preview_path
from normeq.errors import FileError, UsageError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.tif", "a.denoised.tif"),
        ("a.OME.TIFF", "a.denoised.OME.TIFF"),
        ("a.b.png", "a.b.denoised.png"),
        ("photo.JPG", "photo.denoised.png"),
        ("a.ome.zarr", "a.denoised.ome.zarr"),
        ("a.fits", "a.denoised.fits"),
    ],
)
def test_results_lie_beside_their_input(name: str, expected: str) -> None:
    assert beside(Path("folder", name)) == Path("folder", expected)


def test_folders_and_patterns_leave_results_out(tmp_path: Path) -> None:
    for name in ("b.tif", "a.png", "a.denoised.png", "a.preview.png", ".c.tif", "notes.txt"):
        (tmp_path / name).touch()
    zarr.create_group(tmp_path / "d.zarr").create_array("0", data=np.zeros((4, 4)))
    images = [tmp_path / name for name in ("a.png", "b.tif", "d.zarr")]
    assert expand([tmp_path]) == images
    assert expand([str(tmp_path / "*")]) == images
    assert expand([str(tmp_path / "**")]) == images
    assert expand([tmp_path / "a.denoised.png"]) == [tmp_path / "a.denoised.png"]
    assert expand([tmp_path / "a.png", tmp_path]) == images
    assert expand([tmp_path / "d.zarr"]) == [tmp_path / "d.zarr"]


def test_nothing_found_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="contains no image"):
        expand([tmp_path])
    with pytest.raises(FileError, match="nothing matches"):
        expand([str(tmp_path / "*.tif")])


def test_a_folder_takes_the_names_of_the_inputs(tmp_path: Path) -> None:
    inputs = [Path("x/a.tif"), Path("y/b.jpg")]
    assert output_paths(inputs, tmp_path) == [tmp_path / "a.tif", tmp_path / "b.png"]
    assert output_paths(inputs[:1], tmp_path / "new") == [tmp_path / "new/a.tif"]


@pytest.mark.parametrize(
    ("inputs", "output", "sentence"),
    [
        (["a.tif"], "b.fits", "a.tif cannot be written in this format; its result can be .tif"),
        (["a.jpg"], "b.jpg", "a.jpg cannot be written in this format; its result can be .png"),
        (["a.tif"], "b.xyz", "known format"),
        (["a.tif", "b.tif"], "c.tif", "folder"),
        (["x/a.tif", "y/a.tif"], "out", "several images"),
        (["a.jpg", "a.png"], None, "several images"),
        (["a.tif"], "a.tif", "would be overwritten"),
        (["x/a.tif"], "x", "would be overwritten"),
    ],
)
def test_impossible_outputs_are_refused(
    inputs: list[str], output: str | None, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        output_paths([Path(name) for name in inputs], None if output is None else Path(output))


def test_a_part_of_a_zarr_needs_a_place(tmp_path: Path) -> None:
    zarr.create_group(tmp_path / "a.zarr").create_array("raw", data=np.zeros((4, 4)))
    with pytest.raises(UsageError, match="--output"):
        output_paths([tmp_path / "a.zarr/raw"], None)
    assert output_paths([tmp_path / "a.zarr/raw"], tmp_path) == [tmp_path / "raw.zarr"]


@pytest.mark.parametrize("name", ["r.zarr", "plain"])
def test_a_finished_zarr_counts_as_a_file(tmp_path: Path, name: str) -> None:
    result = tmp_path / name
    zarr.create_array(result, data=np.zeros((4, 4)))
    zarr.create_array(tmp_path / "a.zarr", data=np.zeros((4, 4)))
    assert output_paths([tmp_path / "a.zarr"], result) == [result]
    with pytest.raises(UsageError, match="would be overwritten"):
        output_paths([result], result)
    with pytest.raises(UsageError, match=r"a folder, for several images|inside a Zarr"):
        output_paths([tmp_path / "a.zarr", tmp_path / "b.zarr"], result)
    with pytest.raises(UsageError, match="inside a Zarr"):
        output_paths([tmp_path / "a.zarr"], result / "new")


def test_previews_have_names_of_their_own() -> None:
    assert preview_path(Path("a.denoised.ome.tif")) == Path("a.denoised.preview.png")
