"""Files of microscopes and scanners, built byte by byte as the formats are described.

No free library writes LIF, ND2, STK, LSM, SVS or Imaris. `write_czi` gives what libCZI, Zeiss's own
library, reads, and tests/images/data/zeiss.czi was written by that library.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

# LIF ------------------------------------------------------------------------------------------

_LIF_DIMENSIONS = {"X": 1, "Y": 2, "Z": 3}


def _lif_element(name: str, stack: np.ndarray) -> str:
    """Describe a stack of uint16 or uint8, of axes ZYX."""
    bits = 8 * stack.dtype.itemsize
    dimensions = "".join(
        f'<DimensionDescription DimID="{_LIF_DIMENSIONS[axis]}" NumberOfElements="{length}" '
        f'Origin="0" Length="{(length - 1) * 2e-7}" Unit="m" BitInc="0" BytesInc="{stride}"/>'
        for axis, length, stride in zip("ZYX", stack.shape, stack.strides, strict=True)
    )
    return (
        f'<Element Name="{name}" UniqueID="{name}"><Memory Size="{stack.nbytes}" '
        f'MemoryBlockID="Mem{name}"/><Data><Image><ImageDescription><Channels>'
        f'<ChannelDescription DataType="0" ChannelTag="0" Resolution="{bits}" Min="0" Max="1" '
        'NameOfMeasuredQuantity="" Unit="" LUTName="Gray" IsLUTInverted="0" BytesInc="0" '
        f'BitInc="0"/></Channels><Dimensions>{dimensions}</Dimensions></ImageDescription></Image>'
        "</Data></Element>"
    )


def write_lif(path: Path, **stacks: np.ndarray) -> None:
    """Write a Leica file of stacks of axes ZYX: XML, then blocks of pixels."""
    inner = "".join(_lif_element(name, stack) for name, stack in stacks.items())
    xml = (
        '<LMSDataContainerHeader Version="2"><Element Name="project" UniqueID="p"><Memory Size="0" '
        f'MemoryBlockID="MemBlock_p"/><Children>{inner}</Children></Element>'
        "</LMSDataContainerHeader>"
    )
    with path.open("wb") as file:
        file.write(struct.pack("<IIBI", 0x70, 2 * len(xml) + 5, 0x2A, len(xml)))
        file.write(xml.encode("utf-16-le"))
        for name, stack in stacks.items():
            block = f"Mem{name}"
            head = (0x70, 2 * len(block) + 14, 0x2A, stack.nbytes, 0x2A, len(block))
            file.write(struct.pack("<IIBQBI", *head))
            file.write(block.encode("utf-16-le") + stack.tobytes())


# CZI ------------------------------------------------------------------------------------------

_CZI_TYPES = {"uint8": 0, "uint16": 1, "float32": 2}


def _czi_segment(name: str, data: bytes) -> bytes:
    room = -(-len(data) // 32) * 32
    head = struct.pack("<16sqq", name.encode(), room, len(data))
    return head + data.ljust(room, b"\0")


def _czi_entry(place: int, kind: int, compression: int, sides: dict[str, tuple[int, int]]) -> bytes:
    entry = struct.pack("<2siqiib5xi", b"DV", kind, place, 0, compression, 0, len(sides))
    for axis, (start, size) in sides.items():
        entry += struct.pack("<4siifi", axis.encode(), start, size, float(start), size)
    return entry


def write_czi(path: Path, stack: np.ndarray, tile: int = 16, compression: int = 0) -> None:
    """Write a Zeiss file of axes CZYX, in tiles, whose first pixel is at X 100, Y -8.

    Parameters
    ----------
    path, stack
        The file, and its pixels.
    tile
        Side of the tiles.
    compression
        0 none, 2 LZW, 5 zstd, 6 zstd with a header, and the bytes of each half apart.
    """
    channels, depth, height, width = stack.shape
    kind = _CZI_TYPES[str(stack.dtype)]
    places, blocks, entries = [], b"", []
    first = 32 + 512
    for c, z in np.ndindex(channels, depth):
        for y in range(0, height, tile):
            for x in range(0, width, tile):
                pixels = np.ascontiguousarray(stack[c, z, y : y + tile, x : x + tile])
                sides = {"X": (100 + x, pixels.shape[1]), "Y": (y - 8, pixels.shape[0])}
                sides |= {"Z": (z, 1), "C": (c, 1), "M": (len(places), 1)}
                places.append(first + len(blocks))
                entry = _czi_entry(places[-1], kind, compression, sides)
                entries.append(entry)
                data = _czi_encoded(pixels, compression)
                head = struct.pack("<iiq", 0, 0, len(data)) + entry
                blocks += _czi_segment("ZISRAWSUBBLOCK", head.ljust(256, b"\0") + data)
    names = "".join(f'<Channel Id="Channel:{c}" Name="dye {c}"/>' for c in range(channels))
    scaling = "".join(
        f'<Distance Id="{axis}"><Value>{size}</Value></Distance>'
        for axis, size in (("X", 2e-7), ("Y", 2e-7), ("Z", 1e-6))
    )
    xml = (
        "<ImageDocument><Metadata><Information><Image><Dimensions><Channels>"
        f"{names}</Channels></Dimensions></Image></Information><Scaling><Items>{scaling}"
        "</Items></Scaling></Metadata></ImageDocument>"
    ).encode()
    directory_place = first + len(blocks)
    listed = struct.pack("<i124x", len(entries)) + b"".join(entries)
    directory = _czi_segment("ZISRAWDIRECTORY", listed)
    metadata = _czi_segment("ZISRAWMETADATA", struct.pack("<ii248x", len(xml), 0) + xml)
    metadata_place = directory_place + len(directory)
    header = struct.pack(
        "<iiii16s16siqqiq", 1, 0, 0, 0, b"1" * 16, b"1" * 16, 0, directory_place, metadata_place,
        0, 0
    )  # fmt: skip
    beginning = _czi_segment("ZISRAWFILE", header.ljust(512, b"\0"))
    path.write_bytes(beginning + blocks + directory + metadata)


def _czi_encoded(pixels: np.ndarray, compression: int) -> bytes:
    if compression == 0:
        return pixels.tobytes()
    import imagecodecs

    if compression == 2:
        return bytes(imagecodecs.lzw_encode(pixels.tobytes()))
    if compression == 5:
        return bytes(imagecodecs.zstd_encode(pixels.tobytes()))
    halves = np.frombuffer(pixels.tobytes(), np.uint8).reshape(-1, pixels.itemsize).T
    return b"\x03\x01\x01" + bytes(imagecodecs.zstd_encode(np.ascontiguousarray(halves).tobytes()))


# ND2 ------------------------------------------------------------------------------------------


def _nd2_value(name: str, value: Any) -> bytes:
    """Encode a value, or a table of values, with its name."""
    head = bytes([len(name) + 1]) + f"{name}\0".encode("utf-16-le")
    match value:
        case bool():
            return b"\x01" + head + struct.pack("<B", value)
        case int():
            return b"\x03" + head + struct.pack("<I", value)
        case float():
            return b"\x06" + head + struct.pack("<d", value)
        case str():
            return b"\x08" + head + f"{value}\0".encode("utf-16-le")
    inner = b"".join(_nd2_value(key, item) for key, item in value.items())
    length = 1 + len(head) + 12 + len(inner)
    return b"\x0b" + head + struct.pack("<IQ", len(value), length) + inner + bytes(8 * len(value))


def write_nd2(path: Path, stack: np.ndarray, compressed: bool = False) -> None:
    """Write a Nikon file of axes ZCYX: chunks with a map of them at the end."""
    depth, channels, height, width = stack.shape
    bits = 8 * stack.dtype.itemsize
    attributes = {
        "uiWidth": width,
        "uiWidthBytes": width * channels * stack.itemsize,
        "uiHeight": height,
        "uiComp": channels,
        "uiBpcInMemory": bits,
        "uiBpcSignificant": bits,
        "uiSequenceCount": depth,
        "eCompression": 0 if compressed else 2,
    }
    planes = {f"a{c}": {"sDescription": f"dye {c}", "uiCompCount": 1} for c in range(channels)}
    for plane in planes.values():
        plane["pFluorescentProbe"] = {"uiCount": 0}
    about = {
        "bCalibrated": True,
        "dCalibration": 0.3,
        "sPicturePlanes": {"uiCount": channels, "sPlaneNew": planes},
    }
    loop = {"eType": 4, "uLoopPars": {"uiCount": depth, "dZStep": 1.5}}
    chunks = {
        "ImageAttributesLV!": _nd2_value("SLxImageAttributes", attributes),
        "ImageMetadataSeqLV|0!": _nd2_value("SLxPictureMetadata", about),
        "ImageMetadataLV!": _nd2_value("SLxExperiment", loop),
    }
    for number, frame in enumerate(stack):
        pixels = np.ascontiguousarray(np.moveaxis(frame, 0, -1)).tobytes()
        if compressed:
            import zlib

            pixels = zlib.compress(pixels)
        chunks[f"ImageDataSeq|{number}!"] = struct.pack("<d", 0.0) + pixels
    content = _nd2_chunk("ND2 FILE SIGNATURE CHUNK NAME01!", b"Ver3.0".ljust(64, b"\0"), 32)
    listed = b""
    for name, data in chunks.items():
        listed += name.encode() + struct.pack("<QQ", len(content), len(data))
        content += _nd2_chunk(name, data, 4072)
    end = b"ND2 CHUNK MAP SIGNATURE 0000001!"
    place = len(content)
    listed += end + struct.pack("<Q", place)
    path.write_bytes(content + _nd2_chunk("ND2 FILEMAP SIGNATURE NAME 0001!", listed, 32))


def _nd2_chunk(name: str, data: bytes, room: int) -> bytes:
    return (
        struct.pack("<IIQ", 0x0ABECEDA, room, len(data)) + name.encode().ljust(room, b"\0") + data
    )


# Vendors' TIFFs -------------------------------------------------------------------------------


def write_stk(path: Path, stack: np.ndarray) -> None:
    """Write a MetaMorph stack of uint16, of axes ZYX: one directory for all planes."""
    depth, height, width = stack.shape
    unit = b"um\0"
    size = height * width * 2
    pixels = 8
    after = pixels + stack.nbytes
    fraction = after  # 0.25 for both sides
    text = fraction + 8
    uic1 = text + 4 + len(unit) + 1
    uic2 = uic1 + 4 * 8
    uic3 = uic2 + depth * 24
    directory = uic3 + depth * 8
    values = struct.pack("<II", 1, 4) + struct.pack("<I", len(unit)) + unit + b"\0"
    # XCalibration, YCalibration, CalibrationUnits and their flag.
    values += struct.pack("<8I", 4, fraction, 5, fraction, 6, text, 7, 1)
    values += struct.pack("<6I", 3, 2, 2450000, 0, 2450000, 0) * depth  # 1.5 from plane to plane
    values += struct.pack("<2I", 525, 1) * depth
    tags = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, 1, 16),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, 1, pixels),
        (277, 3, 1, 1),
        (278, 4, 1, height),
        (279, 4, 1, size),
        (33628, 4, 4, uic1),
        (33629, 5, depth, uic2),
        (33630, 5, depth, uic3),
    ]
    entries = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags)
    start = struct.pack("<2sHI", b"II", 42, directory)
    path.write_bytes(start + stack.astype("<u2").tobytes() + values + entries + bytes(4))


_LSM_KEYS = {
    "MagicNumber": 67127628,
    "ScanType": 0,  # planes in X, Y and Z
    "VoxelSizeX": 2e-7,
    "VoxelSizeY": 2e-7,
    "VoxelSizeZ": 1e-6,
    "DimensionChannels": 1,
    "DimensionTime": 1,
}


def write_lsm(path: Path, stack: np.ndarray) -> None:
    """Write a confocal stack: each plane is followed by its thumbnail."""
    info = np.zeros((), np.dtype(tifffile.TIFF.CZ_LSMINFO))
    sides = dict(zip(("DimensionZ", "DimensionY", "DimensionX"), stack.shape, strict=True))
    for name, value in (_LSM_KEYS | sides | {"StructureSize": info.itemsize}).items():
        info[name] = value
    with tifffile.TiffWriter(path, byteorder="<") as writer:
        for number, plane in enumerate(stack):
            tag = (34412, 1, info.itemsize, info.tobytes(), True)
            tags = [tag] if number == 0 else []
            writer.write(plane, metadata=None, extratags=tags, contiguous=False)
            writer.write(plane[::4, ::4], metadata=None, subfiletype=1, contiguous=False)


def write_svs(path: Path, slide: np.ndarray) -> None:
    """Write a slide with a thumbnail, a label and an overview."""
    with tifffile.TiffWriter(path) as writer:
        about: dict[str, Any] = {"photometric": "rgb", "metadata": None}
        aperio = "Aperio Image Library v11\n%d |AppMag = 20|MPP = 0.4990"
        writer.write(slide, tile=(16, 16), description=aperio % 0, **about)
        writer.write(slide[::4, ::4], description=aperio % 1, **about)
        for name, kind in (("label", 1), ("macro", 9)):
            text = f"Aperio Image Library v11\n{name} 20x20"
            writer.write(slide[:20, :20], subfiletype=kind, description=text, **about)


# Imaris ---------------------------------------------------------------------------------------


def _letters(text: object) -> np.ndarray:
    return np.array(list(str(text)), "S1")


def write_imaris(path: Path, image: np.ndarray) -> None:
    """Write TCZYX as Imaris does: padded to whole chunks, with a pyramid."""
    import h5py

    with h5py.File(path, "w") as file:
        about = file.create_group("DataSetInfo/Image").attrs
        sides = zip(image.shape[:1:-1], (0.2, 0.2, 1.0), strict=True)
        for number, (side, size) in enumerate(sides):
            about[f"ExtMin{number}"], about[f"ExtMax{number}"] = _letters(0), _letters(side * size)
        for c in range(image.shape[1]):
            file.create_group(f"DataSetInfo/Channel {c}").attrs["Name"] = _letters(f"dye {c}")
        for level in (0, 1):
            for t, c in np.ndindex(*image.shape[:2]):
                name = f"DataSet/ResolutionLevel {level}/TimePoint {t}/Channel {c}"
                group = file.create_group(name)
                pixels = image[t, c, :, :: level + 1, :: level + 1]
                for axis, length in zip("ZYX", pixels.shape, strict=True):
                    group.attrs[f"ImageSize{axis}"] = _letters(length)
                padded = np.pad(pixels, [(0, -length % 8) for length in pixels.shape])
                group.create_dataset("Data", data=padded, chunks=(8, 8, 8), compression="gzip")
