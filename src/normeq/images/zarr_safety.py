"""What a Zarr must not do: point outside its folder, or fill the memory from a few bytes.

Names in its metadata, symbolic links and compressed chunks are taken for hostile until checked.
"""

from __future__ import annotations

import bz2
import lzma
import math
import os
import stat
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from numcodecs import zstd
from zarr.abc.codec import BytesBytesCodec
from zarr.codecs import ShardingCodec
from zarr.codecs._v2 import V2Codec
from zarr.storage import LocalStore

from normeq.errors import InputError

# A chunk may decompress to its size and this much more: checksums, and what filters add.
_MARGIN = 2**16
# Compressed data is decompressed for its length alone in pieces of this size.
_PIECE = 2**20


def inside(store: Path, name: object) -> str:
    """Return a path that a store's metadata names, if it stays in the store."""
    parts = PurePosixPath(name).parts if isinstance(name, str) else ()
    relative = parts and parts[0] != "/" and ".." not in parts
    if not relative or "\\" in str(name) or not _is_within(store / str(name), store):
        raise InputError(f"{store} names an array {name!r}, which is not inside it.")
    return str(name)


def check_entry(path: Path) -> None:
    """Refuse to copy a symbolic link, or what is neither a file nor a folder."""
    mode = path.lstat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
        raise InputError(
            f"{path} is {kind}; replace it with a copy of what it stands for, or remove it."
        )


def _is_within(path: Path, folder: Path) -> bool:
    real, root = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([real, root]) == root


class ContainedStore(LocalStore):
    """A folder whose files are read only if they are files, and in the folder."""

    def _check(self, key: str) -> None:
        path = self.root / key
        if not _is_within(path, self.root):
            raise InputError(f"{path} points outside the store.")
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            raise InputError(f"{path} is neither a file nor a folder.")

    async def get(self, key: str, *options: Any, **more: Any) -> Any:
        """Return the bytes of a file, or None."""
        self._check(key)
        return await super().get(key, *options, **more)

    def get_sync(self, key: str, *options: Any, **more: Any) -> Any:
        """Return the bytes of a file, or None."""
        self._check(key)
        return super().get_sync(key, *options, **more)


def bound_chunks(array: Any) -> None:
    """Let an array refuse chunks that decompress to more than their shape takes."""
    stored = array.async_array
    limit = math.prod(array.chunks) * array.dtype.itemsize + _MARGIN
    codecs = [_bounded(codec, limit) for codec in stored.codec_pipeline]
    # The array is frozen, and there is no other way to exchange its codecs.
    object.__setattr__(stored, "codec_pipeline", type(stored.codec_pipeline).from_codecs(codecs))


def _bounded(codec: Any, limit: int) -> Any:
    if isinstance(codec, ShardingCodec):
        return replace(codec, codecs=tuple(_bounded(inner, limit) for inner in codec.codecs))
    if isinstance(codec, V2Codec) and codec.compressor is not None:
        compressor: Any = _BoundedCompressor(codec.compressor, limit)
        return replace(codec, compressor=compressor)
    return _BoundedCodec(codec, limit) if isinstance(codec, BytesBytesCodec) else codec


@dataclass(frozen=True)
class _BoundedCompressor:
    """A compressor of Zarr 2 that decompresses up to a number of bytes."""

    inner: Any
    limit: int

    def decode(self, data: Any, out: Any = None) -> Any:
        _check_size(self.inner.codec_id, bytes(data), self.limit)
        return self.inner.decode(data, out)


@dataclass(frozen=True)
class _BoundedCodec(BytesBytesCodec):
    """A codec of Zarr 3 that decompresses up to a number of bytes."""

    inner: Any
    limit: int
    is_fixed_size = False

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        name = self.inner.to_dict()["name"].removeprefix("numcodecs.")
        _check_size(name, chunk_bytes.to_bytes(), self.limit)
        return await self.inner._decode_single(chunk_bytes, chunk_spec)

    def evolve_from_array_spec(self, array_spec: Any) -> Any:
        return replace(self, inner=self.inner.evolve_from_array_spec(array_spec))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        return int(self.inner.compute_encoded_size(input_byte_length, chunk_spec))


def _check_size(compressor: str, data: bytes, limit: int) -> None:
    """Raise if compressed data is known to hold more than `limit` bytes."""
    measure = _MEASURES.get(compressor)
    if measure is not None and measure(data, limit) > limit:
        raise ValueError(f"a chunk decompresses to more than {limit} bytes")


def _number_at(place: int, format: str) -> Callable[[bytes, int], int]:
    """Measure by a number in the header."""

    def measure(data: bytes, limit: int) -> int:
        if len(data) < place + struct.calcsize(format):
            return 0  # broken, as the decoder will say
        return int(struct.unpack_from(format, data, place)[0])

    return measure


def _by_decompressing(make: Callable[[], Any]) -> Callable[[bytes, int], int]:
    """Measure by decompressing piece by piece, and stop beyond the limit."""

    def measure(data: bytes, limit: int) -> int:
        decompressor = make()
        size, rest = 0, data
        try:
            while size <= limit:
                piece = decompressor.decompress(rest, _PIECE)
                rest = getattr(decompressor, "unconsumed_tail", b"")
                size += len(piece)
                if decompressor.eof:  # another stream may follow
                    rest, decompressor = decompressor.unused_data, make()
                if not piece and not rest:
                    break
        except (zlib.error, OSError, lzma.LZMAError, EOFError):
            pass  # broken, as the decoder will say
        return size

    return measure


def _zstd_size(data: bytes, limit: int) -> int:
    """Measure Zstandard by its header; where that does not say, only one size is accepted."""
    if len(data) < 6 or data[:4] != b"\x28\xb5\x2f\xfd":
        return 0
    single, flag = data[4] >> 5 & 1, data[4] >> 6
    width = (1 if single else 0, 2, 4, 8)[flag]
    place = 5 + (not single) + (0, 1, 2, 4)[data[4] & 3]
    if width:
        return int.from_bytes(data[place : place + width], "little") + (256 if width == 2 else 0)
    try:
        zstd.decompress(data, bytearray(limit - _MARGIN))
    except RuntimeError:
        return limit + 1
    return 0


_MEASURES: dict[str, Callable[[bytes, int], int]] = {
    "blosc": _number_at(4, "<I"),
    "lz4": _number_at(0, "<I"),
    "zstd": _zstd_size,
    "gzip": _by_decompressing(lambda: zlib.decompressobj(47)),
    "zlib": _by_decompressing(zlib.decompressobj),
    "bz2": _by_decompressing(bz2.BZ2Decompressor),
    "lzma": _by_decompressing(lzma.LZMADecompressor),
}
