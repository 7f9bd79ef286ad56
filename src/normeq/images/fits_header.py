"""Headers of FITS files: read before any pixel, with nothing in them taken on trust.

A file is a sequence of units, each a header and its data, in blocks of 2880 bytes. A header is a
sequence of cards of 80 characters, ``KEYWORD = value / comment``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from normeq.errors import printable

BLOCK, _CARD = 2880, 80
# Far beyond every header that a camera or a survey writes.
_MOST_BLOCKS = 4096
_MOST_UNITS = 10_000
_MOST_AXES = 999

Value = bool | int | float | str

_TEXT = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True)
class Unit:
    """A header and where its data is.

    Attributes
    ----------
    number
        0 for the first unit of the file.
    values
        Of the first card of each keyword.
    start, data, size
        Place of the header, place of the data, and length of the data in bytes.
    """

    number: int
    values: Mapping[str, Value]
    start: int
    data: int
    size: int

    @property
    def name(self) -> str:
        """The name of the extension, or its number."""
        return printable(str(self.values.get("EXTNAME", "")).strip()) or str(self.number)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes, slowest first."""
        return tuple(reversed(_axes(self.values)))

    @property
    def is_image(self) -> bool:
        """Whether the data are an uncompressed image of two or more axes."""
        kind = str(self.values.get("XTENSION", "IMAGE")).strip()
        return kind == "IMAGE" and len(self.shape) >= 2 and not self.values.get("GROUPS")

    @property
    def is_compressed_image(self) -> bool:
        """Whether the data are a table that holds the tiles of an image."""
        return self.values.get("ZIMAGE") is True


def read_units(path: Path) -> list[Unit]:
    """Return all units of a file, from their headers alone."""
    length = path.stat().st_size
    units: list[Unit] = []
    with path.open("rb") as file:
        place = 0
        while place < length and len(units) < _MOST_UNITS:
            file.seek(place)
            first = file.read(8)
            if units and first != b"XTENSION":
                break  # special records, or padding, that the standard allows at the end
            if not units and first != b"SIMPLE  ":
                raise ValueError("the file does not start like a FITS file")
            file.seek(place)
            values = dict(reversed(list(_cards(file))))  # of several cards, the first counts
            data, size = file.tell(), _data_size(values)
            units.append(Unit(len(units), values, place, data, size))
            place = data + math.ceil(size / BLOCK) * BLOCK
    return units


def _cards(file: BinaryIO) -> Iterator[tuple[str, Value]]:
    for _ in range(_MOST_BLOCKS):
        block = file.read(BLOCK)
        if len(block) < BLOCK:
            raise ValueError("the file is truncated: a header has no end")
        for start in range(0, BLOCK, _CARD):
            card = block[start : start + _CARD].decode("latin-1")
            keyword = card[:8].rstrip()
            if keyword == "END":
                return
            if card[8:10] == "= ":
                yield keyword, _value(card[10:])
    raise ValueError(f"a header has more than {_MOST_BLOCKS} blocks")


def _value(text: str) -> Value:
    quoted = _TEXT.match(text.strip())
    if quoted:
        return quoted.group(1).replace("''", "'").rstrip()
    plain = text.split("/", 1)[0].strip()
    if plain in ("T", "F"):
        return plain == "T"
    try:
        return int(plain)
    except ValueError:
        pass
    try:
        return float(plain.replace("D", "E"))
    except ValueError:
        return plain


def _axes(values: Mapping[str, Value]) -> list[int]:
    count = _whole(values, "NAXIS")
    if count > _MOST_AXES:
        raise ValueError(f"NAXIS is {count}, but there are at most {_MOST_AXES} axes")
    return [_whole(values, f"NAXIS{axis}") for axis in range(1, count + 1)]


def _data_size(values: Mapping[str, Value]) -> int:
    axes = _axes(values)
    if not axes:
        return 0
    if axes[0] == 0 and values.get("GROUPS") is True:  # random groups
        axes = axes[1:]
    count = _whole(values, "GCOUNT", 1) * (_whole(values, "PCOUNT", 0) + math.prod(axes))
    return count * abs(_integer(values, "BITPIX")) // 8


def _whole(values: Mapping[str, Value], keyword: str, default: int | None = None) -> int:
    value = _integer(values, keyword, default)
    if value < 0:
        raise ValueError(f"{keyword} is {value}, but cannot be negative")
    return value


def _integer(values: Mapping[str, Value], keyword: str, default: int | None = None) -> int:
    value = values.get(keyword, default)
    if type(value) is not int:
        raise ValueError(f"{keyword} is {'missing' if value is None else repr(value)[:40]}")
    return value


# Changes --------------------------------------------------------------------------------------


def add_history(path: Path, number: int, *lines: str) -> None:
    """Add lines to the history of a unit; what comes after it moves if its header has no room."""
    unit = read_units(path)[number]
    texts = [line[i : i + 72] for line in lines for i in range(0, len(line), 72)]
    cards = [f"HISTORY {text}".ljust(_CARD) for text in texts] + ["END".ljust(_CARD)]
    with path.open("r+b") as file:
        file.seek(unit.start)
        header = file.read(unit.data - unit.start).decode("latin-1")
        starts = range(0, len(header), _CARD)
        end = next(start for start in starts if header[start : start + 8].rstrip() == "END")
        changed = header[:end] + "".join(cards)
        changed = changed.ljust(math.ceil(len(changed) / BLOCK) * BLOCK)
        _move_tail(file, unit.data, len(changed) - len(header))
        file.seek(unit.start)
        file.write(changed.encode("latin-1"))


def _move_tail(file: BinaryIO, place: int, distance: int) -> None:
    """Move everything from a place on towards the end of the file, the last piece first."""
    length = file.seek(0, 2)
    step = BLOCK * 1024
    for start in reversed(range(place, length, step) if distance else ()):
        file.seek(start)
        data = file.read(min(step, length - start))
        file.seek(start + distance)
        file.write(data)


# Checksums ------------------------------------------------------------------------------------


def renew_checksums(path: Path, unit: Unit) -> None:
    """Write DATASUM and CHECKSUM of a unit anew, where it has them."""
    with path.open("r+b") as file:
        if "DATASUM" in unit.values:
            total = _sum(file, unit.data, unit.data + math.ceil(unit.size / BLOCK) * BLOCK)
            _replace_text(file, unit, "DATASUM", str(total))
        if "CHECKSUM" in unit.values:
            _replace_text(file, unit, "CHECKSUM", "0" * 16)
            total = _sum(file, unit.start, unit.data + math.ceil(unit.size / BLOCK) * BLOCK)
            _replace_text(file, unit, "CHECKSUM", _encoded(~total & 0xFFFFFFFF))


def _sum(file: BinaryIO, start: int, stop: int) -> int:
    """Add 32-bit numbers in ones' complement, as the standard has it."""
    total = 0
    file.seek(start)
    for place in range(start, stop, BLOCK * 1024):
        data = file.read(min(BLOCK * 1024, stop - place))
        whole = data.ljust(math.ceil(len(data) / 4) * 4, b"\0")
        total += int(np.frombuffer(whole, ">u4").sum(dtype=np.uint64))
        while total >> 32:
            total = (total & 0xFFFFFFFF) + (total >> 32)
    return total


def _encoded(number: int) -> str:
    """Write a number in 16 letters and digits, as the standard has it."""
    forbidden = {*range(0x3A, 0x41), *range(0x5B, 0x61)}
    letters = [0] * 16
    for position, byte in enumerate(number.to_bytes(4, "big")):
        four = [byte // 4 + 0x30] * 4
        four[0] += byte % 4
        for first in (0, 2):
            while {four[first], four[first + 1]} & forbidden:
                four[first] += 1
                four[first + 1] -= 1
        for row in range(4):
            letters[4 * row + position] = four[row]
    return bytes(letters[-1:] + letters[:-1]).decode("ascii")


def _replace_text(file: BinaryIO, unit: Unit, keyword: str, text: str) -> None:
    """Change the text of a card, and leave its comment."""
    file.seek(unit.start)
    header = file.read(unit.data - unit.start).decode("latin-1")
    for start in range(0, len(header), _CARD):
        if header[start : start + 10] == f"{keyword:<8}= ":
            card = header[start : start + _CARD]
            comment = _TEXT.sub("", card[10:], count=1).strip()
            value = f"'{text:<8}'"
            changed = f"{keyword:<8}= {value:<20} {comment}".ljust(_CARD)[:_CARD]
            file.seek(unit.start + start)
            file.write(changed.encode("latin-1"))
            return
