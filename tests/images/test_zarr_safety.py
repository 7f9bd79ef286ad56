"""Zarr stores that mean harm: paths and links that lead out, and chunks that explode."""

import os
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from helpers.image_samples import copy, sample
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

from normeq import images
from normeq.errors import FileError, InputError, NormeqError
from normeq.images import open_image

needs_links = pytest.mark.skipif(os.name != "posix", reason="symbolic links")


def ome_zarr(path: Path, level: str, version: Any = 2) -> zarr.Group:
    group = zarr.create_group(path, zarr_format=version)
    group.attrs["multiscales"] = [{"axes": ["y", "x"], "datasets": [{"path": level}]}]
    group.create_array("0", data=sample((8, 8), "uint8"), chunks=(8, 8))
    return group


@pytest.mark.parametrize("level", ["{victim}", "../victim.zarr", "0/../../victim.zarr", "", ".", 7])
def test_levels_outside_of_the_store_are_refused(tmp_path: Path, level: Any) -> None:
    victim = tmp_path / "victim.zarr"
    zarr.create_array(victim, data=np.full((8, 8), 7, np.uint8), zarr_format=2)
    named = level.format(victim=victim) if isinstance(level, str) else level
    ome_zarr(tmp_path / "in.zarr", named)
    with pytest.raises(InputError, match="not inside it"):
        copy(tmp_path / "in.zarr", tmp_path / "out.zarr")
    assert (images.read(victim) == 7).all()


def test_a_level_that_is_missing_is_a_sentence(tmp_path: Path) -> None:
    ome_zarr(tmp_path / "in.zarr", "7")
    with pytest.raises(InputError, match="names an array '7', but does not contain it"):
        open_image(tmp_path / "in.zarr")


@needs_links
def test_a_level_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "victim.zarr", data=sample((8, 8), "uint8"), zarr_format=2)
    ome_zarr(tmp_path / "in.zarr", "1")
    (tmp_path / "in.zarr" / "1").symlink_to(tmp_path / "victim.zarr")
    with pytest.raises(InputError, match="not inside it"):
        open_image(tmp_path / "in.zarr")


@needs_links
@pytest.mark.parametrize("target", ["secret", "/dev/zero", ".", "in.zarr/0"])
def test_links_are_not_copied(tmp_path: Path, target: str) -> None:
    (tmp_path / "secret").write_text("mine")
    ome_zarr(tmp_path / "in.zarr", "0")
    (tmp_path / "in.zarr" / "labels").symlink_to(tmp_path / target)
    with pytest.raises(InputError, match="labels is a symbolic link"):
        copy(tmp_path / "in.zarr", tmp_path / "out.zarr")
    assert not list((tmp_path / "out.zarr").glob("**/labels*"))


@needs_links
def test_a_pipe_is_not_copied(tmp_path: Path) -> None:
    ome_zarr(tmp_path / "in.zarr", "0")
    os.mkfifo(tmp_path / "in.zarr" / "labels")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        copy(tmp_path / "in.zarr", tmp_path / "out.zarr")


@needs_links
@pytest.mark.parametrize("target", ["/dev/zero", "/dev/urandom", "../secret"])
def test_chunks_outside_of_the_store_are_not_read(tmp_path: Path, target: str) -> None:
    (tmp_path / "secret").write_bytes(bytes(64))
    zarr.create_array(
        tmp_path / "in.zarr", data=sample((8, 8), "uint8"), zarr_format=2, compressors=None
    )
    (tmp_path / "in.zarr" / "0.0").unlink()
    (tmp_path / "in.zarr" / "0.0").symlink_to(target)
    with pytest.raises(InputError, match="points outside the store"):
        images.read(tmp_path / "in.zarr")


COMPRESSORS = [
    numcodecs.GZip(),
    numcodecs.Zlib(),
    numcodecs.Zstd(),
    numcodecs.Blosc(),
    numcodecs.LZ4(),
    numcodecs.BZ2(),
    numcodecs.LZMA(),
]


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda codec: codec.codec_id)
def test_a_chunk_that_inflates_beyond_its_shape_is_refused(tmp_path: Path, compressor: Any) -> None:
    image = sample((40, 50), "uint16")
    zarr.create_array(
        tmp_path / "in.zarr", data=image, chunks=(16, 16), compressors=compressor, zarr_format=2
    )
    np.testing.assert_array_equal(images.read(tmp_path / "in.zarr"), image)
    chunk = tmp_path / "in.zarr" / "0.0"
    chunk.write_bytes(bytes(compressor.encode(np.zeros(10**6, np.uint8))))
    with pytest.raises(FileError, match="decompresses to more than"):
        images.read(tmp_path / "in.zarr")


@pytest.mark.parametrize(
    "codec", [GzipCodec(), ZstdCodec(), BloscCodec()], ids=["gzip", "zstd", "blosc"]
)
@pytest.mark.parametrize("shards", [None, (16, 16)])
def test_chunks_of_version_3_are_bounded_too(
    tmp_path: Path, codec: Any, shards: tuple[int, ...] | None
) -> None:
    image = sample((32, 32), "uint16")
    options: dict[str, Any] = {"compressors": codec, "chunks": (8, 8), "shards": shards}
    zarr.create_array(tmp_path / "in.zarr", data=image, **options)
    np.testing.assert_array_equal(images.read(tmp_path / "in.zarr"), image)
    if shards is None:
        bomb = {"chunks": (512, 512), "compressors": codec}
        zarr.create_array(tmp_path / "bomb.zarr", data=np.ones((512, 512), np.uint16), **bomb)
        data = (tmp_path / "bomb.zarr/c/0/0").read_bytes()
        (tmp_path / "in.zarr/c/0/0").write_bytes(data)
        with pytest.raises(FileError, match="decompresses to more than"):
            images.read(tmp_path / "in.zarr")


def test_streams_one_after_another_are_added_up(tmp_path: Path) -> None:
    zarr.create_array(
        tmp_path / "in.zarr",
        data=sample((16, 16), "uint8"),
        compressors=numcodecs.GZip(),
        zarr_format=2,
    )
    many = bytes(numcodecs.GZip().encode(np.zeros(60_000, np.uint8))) * 4
    (tmp_path / "in.zarr" / "0.0").write_bytes(many)
    with pytest.raises(FileError, match="decompresses to more than"):
        images.read(tmp_path / "in.zarr")


def test_chunks_larger_than_memory_are_refused(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "in.zarr", shape=(10**6, 10**6), chunks=(10**6, 10**6), dtype="u1")
    with pytest.raises(NormeqError, match="in smaller chunks"):
        open_image(tmp_path / "in.zarr", max_pixels=10**13)
