"""Which files to denoise, and where the results go."""

from __future__ import annotations

import glob
import logging
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from normeq.errors import FileError, UsageError, printable
from normeq.images import extension_of, format_of, is_store, result_extension, split_part
from normeq.images.addresses import Address, is_address, located
from normeq.images.converting import can_be_created
from normeq.images.float_copies import float_extension

log = logging.getLogger(__name__)

_MARK = ".denoised"
_PREVIEW = ".preview.png"
_REPORT = ".report.png"
# A message names this many files that were skipped.
_NAMED = 10


def expand(inputs: Iterable[str | Path]) -> list[Path]:
    """Turn names, folders and patterns into the images they stand for, in order and once each.

    Results of earlier runs (``NAME.denoised.EXT``) are taken only when named themselves.
    """
    found: dict[Path, None] = {}
    for entry in inputs:
        path = located(entry)
        # Unlike the methods of Path, these do not raise where permission is missing.
        if os.path.exists(path) and not _is_folder(path):
            found[path] = None
            continue
        if _is_folder(path):
            images = _images_in(path)
            if not images:
                raise FileError(f"{path} contains no image in a known format.")
        elif not isinstance(path, Address) and glob.has_magic(str(entry)):
            matches = sorted(Path(match) for match in glob.glob(str(entry), recursive=True))
            images = [match for match in matches if _is_input(match)]
            if not images:
                raise FileError(f"nothing matches {entry}.")
        else:
            images = [path]  # it does not exist: that is said when its turn comes
        found.update(dict.fromkeys(images))
    return list(found)


def _images_in(folder: Path) -> list[Path]:
    """Return the images in a folder, and log which other files it holds."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise FileError(f"the folder {folder} cannot be listed ({error.strerror}).") from error
    images = [path for path in entries if _is_input(path)]
    others = [
        path.name
        for path in entries
        if path not in images and not _is_hidden_or_result(path) and os.path.isfile(path)
    ]
    if others:
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        names = printable(", ".join(others[:_NAMED]))
        log.warning("%s: skipped files that are not images: %s%s", folder, names, more)
    return images


def _is_hidden_or_result(path: Path) -> bool:
    return (
        path.name.startswith(".")
        or f"{_MARK}." in path.name
        or path.name.endswith((_PREVIEW, _REPORT))
    )


def _is_input(path: Path) -> bool:
    known = not _is_hidden_or_result(path) and format_of(path) is not None
    return known and not _inside_zarr(path)


def _inside_zarr(path: Path) -> bool:
    return any(is_store(parent) for parent in path.parents)


def _is_folder(path: Path) -> bool:
    """Tell a folder that may hold images from one that is an image, such as a Zarr."""
    return os.path.isdir(path) and not is_store(path)


def output_paths(inputs: Sequence[Path], output: Path | None) -> list[Path]:
    """Return where each result goes.

    Parameters
    ----------
    inputs
        The images.
    output
        None: ``NAME.denoised.EXT`` beside each. A folder: the name of each in it. A file: that,
        for one image.

    Examples
    --------
    >>> [str(path) for path in output_paths([Path("a.ome.tif"), Path("b.jpg")], None)]
    ['a.denoised.ome.tif', 'b.denoised.png']
    >>> str(output_paths([Path("a.tif")], Path("clean.tif"))[0])
    'clean.tif'
    """
    if output is not None and is_address(output):
        raise UsageError(f"--output {output}: results are written to files, not to addresses.")
    if output is None:
        targets = [beside(path) for path in inputs]
    elif len(inputs) == 1 and not _is_folder(output) and format_of(output) is not None:
        targets = [_possible(inputs[0], output)]
    elif output.suffix and not _is_folder(output):
        wanted = "a file in a known format" if len(inputs) == 1 else "a folder, for several images"
        raise UsageError(f"--output {output} must be {wanted}.")
    else:
        targets = [output / "".join(_named(path)) for path in inputs]
    twice = [path for path, count in Counter(targets).items() if count > 1]
    if twice:
        raise UsageError(f"several images would be written to {twice[0]}: denoise them separately.")
    for path, target in zip(inputs, targets, strict=True):
        if os.path.realpath(target) == os.path.realpath(split_part(path)[0]):
            raise UsageError(
                f"{path} would be overwritten by its own result: choose another output."
            )
        if _inside_zarr(target):
            raise UsageError(f"--output {output} is inside a Zarr store: choose a path outside it.")
    return targets


def beside(path: Path) -> Path:
    """Return the default place of a result: ``NAME.denoised.EXT`` in the folder of the input."""
    if isinstance(path, Address):
        raise UsageError(f"{path} is not on this machine: say with --output where to write.")
    if _inside_zarr(path):
        raise UsageError(f"{path} is part of a Zarr store: say with --output where to write.")
    name, extension = _named(path)
    return split_part(path)[0].with_name(name + _MARK + extension)


def preview_path(target: Path) -> Path:
    """Return where the preview of a result goes: ``NAME.preview.png`` beside it."""
    return target.with_name(_named(target)[0] + _PREVIEW)


def report_path(target: Path) -> Path:
    """Return where the picture of a report goes: ``NAME.report.png`` beside the result."""
    return target.with_name(_named(target)[0] + _REPORT)


def std_path(target: Path) -> Path:
    """Return where the error bars of a result go: ``NAME.std.EXT`` beside it.

    >>> std_path(Path("a.denoised.tif")).name, std_path(Path("b.png")).name
    ('a.denoised.std.tif', 'b.std.ome.tif')
    """
    return target.with_name(f"{_named(target)[0]}.std{float_extension(target)}")


def _named(path: Path) -> tuple[str, str]:
    """Split a name into stem and the extension of its result, ``.ome`` being a part of it."""
    return split_part(path)[0].name.removesuffix(extension_of(path)), result_extension(path)


def _possible(path: Path, output: Path) -> Path:
    """Return a file for the result of an image, if its format can be written."""
    extension = result_extension(path)
    if extension and not can_be_created(path, output):
        raise UsageError(
            f"--output {output}: {path} cannot be written in this format; its result can be "
            f"{extension}."
        )
    return output
