"""What an exported ONNX file says of its network, in a header that is not trusted."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

from normeq.denoising.introspection import Law
from normeq.errors import WeightsError, reason
from normeq.models.noise_maps import TAKES_SIGMA, TakesSigma

#: The key of the file's metadata under which the header is stored.
KEY = "normeq"
_FORMAT = 1
_LONGEST = 2**20
# Far beyond any network's, so that a damaged number asks for no impossible memory.
_LARGEST = 2**20


@dataclass(frozen=True)
class OnnxHeader:
    """What is known of an exported network.

    Attributes
    ----------
    inputs
        Names of the inputs, in order: ``image`` and, if the network is told the noise,
        ``sigma`` and ``correlation``.
    channels
        Of the image.
    takes_sigma
        Whether the file is told the noise level.
    offsets
        How many maps of sigma it takes: one, or one for each channel.
    stride
        Tiles start on multiples of it.
    receptive_field
        How far an output pixel looks, to each side; None if it depends on the whole image.
    law
        How the network follows a change of units.
    opset
        The version of ONNX's operators.
    bytes_per_pixel
        Size of the largest activation, for each pixel of the image.
    digest
        SHA-256 of the network's tensors.
    name
        What the network was called.
    """

    inputs: tuple[str, ...]
    channels: int
    takes_sigma: TakesSigma
    offsets: int
    stride: int
    receptive_field: int | None
    law: Law
    opset: int
    bytes_per_pixel: int
    digest: str
    name: str

    def to_text(self) -> str:
        """Return the header as it is stored."""
        return json.dumps({"format": _FORMAT, **asdict(self)}, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> OnnxHeader:
        """Read a header; raise `WeightsError` if anything in it cannot be.

        Examples
        --------
        >>> OnnxHeader.from_text('{"format": 1, "inputs": ["image"]}')
        Traceback (most recent call last):
        ...
        normeq.errors.WeightsError: its header is damaged: it lacks 'channels'.
        """
        if len(text) > _LONGEST:
            raise WeightsError(f"its header has {len(text):,} characters, more than {_LONGEST:,}.")
        try:
            about = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise WeightsError(f"its header is damaged: {reason(error)}.") from error
        if not isinstance(about, dict):
            raise WeightsError("its header is damaged: it is not a table.")
        if about.get("format") != _FORMAT:
            raise WeightsError(
                f"its header has format {about.get('format')!r}, newer than this normeq: upgrade "
                "it."
            )
        for field in fields(cls):
            if field.name not in about:
                raise WeightsError(f"its header is damaged: it lacks {field.name!r}.")
            if not _is_possible(field.name, about[field.name]):
                raise WeightsError(
                    f"its header is damaged: {field.name} is {str(about[field.name])[:80]!r}."
                )
        values: dict[str, Any] = {field.name: about[field.name] for field in fields(cls)}
        return cls(**values | {"inputs": tuple(values["inputs"])})


def _is_possible(name: str, value: Any) -> bool:
    """Whether a field can have a value."""
    match name:
        case "inputs":
            return value in (["image"], ["image", "sigma"], ["image", "sigma", "correlation"])
        case "takes_sigma":
            return value in TAKES_SIGMA
        case "law":
            return value in get_args(Law)
        case "digest" | "name":
            return isinstance(value, str)
        case "receptive_field":
            return value is None or (type(value) is int and 0 <= value <= _LARGEST)
    return type(value) is int and 1 <= value <= _LARGEST
