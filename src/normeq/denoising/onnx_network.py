"""ONNX files as networks, run by onnxruntime: ours, and those of others if their shapes fit."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from normeq.denoising.introspection import Law
from normeq.denoising.onnx_header import KEY, OnnxHeader
from normeq.equivariance import equivariance_error
from normeq.equivariance.worst_errors import TOLERANCES
from normeq.errors import UsageError, WeightsError, reason
from normeq.models.noise_maps import TakesSigma, correlation_maps, sigma_map

_LOG = logging.getLogger(__name__)
# What protocol buffers, which ONNX files are, can hold.
_LARGEST_FILE = 2**31
#: Gains, and offsets in spreads, with which the law of a file is measured.
_GAINS, _OFFSETS = (0.01, 100.0), (-10.0, 100.0)
_SIZE = (24, 37)


class OnnxNetwork(nn.Module):
    """A network in an ONNX file: ``net(x, sigma=None, correlation=None)`` as it was in PyTorch.

    The law that the file declares, ``net(λ·x + μ, λ·σ) = λ·net(x, σ) + μ`` for most, is measured
    before it is believed; if it does not hold, the network counts as not equivariant. That of a
    file of others, which declares nothing, is what is measured.

    Parameters
    ----------
    path
        The file. A file that was not written by ``normeq export`` may have one input
        ``(N, 1 or 3, H, W)`` of free height and width, and an output of the same shape.
    device
        ``"cuda"`` needs the CUDA build of onnxruntime; ``"auto"`` and ``"cpu"`` take the
        processor.
    data
        The file's bytes, if there is no file yet.
    """

    #: The precisions in which it can be run.
    precisions = (torch.float32,)

    def __init__(
        self, path: str | os.PathLike[str], device: str = "auto", *, data: bytes | None = None
    ) -> None:
        super().__init__()
        self.path = Path(path)
        self.device = device
        self._data = self._read() if data is None else data
        self._start()
        self.digest = hashlib.sha256(self._data).hexdigest()
        #: What the file says of itself; None for a file of others.
        self.header = header = self._read_header()
        self._check_inputs(header)
        self.channels = self._image_channels() if header is None else header.channels
        self.takes_sigma: TakesSigma = "never" if header is None else header.takes_sigma
        self.takes_correlation = header is not None and "correlation" in header.inputs
        self.offsets = 1 if header is None else header.offsets
        self.separate_channels = self.offsets > 1
        self.stride = 1 if header is None else header.stride
        self.receptive_field = None if header is None else header.receptive_field
        self.bytes_per_pixel = None if header is None else header.bytes_per_pixel
        self.equivariance = self._measure_law(None if header is None else header.law)

    def forward(
        self,
        x: Tensor,
        sigma: float | Tensor | None = None,
        correlation: Tensor | None = None,
    ) -> Tensor:
        """Denoise a batch; see `normeq.models.DenoisingNetwork.forward`."""
        if sigma is None and self.takes_sigma == "always":
            raise UsageError(f"{self.path.name} needs the noise level: pass sigma.")
        if sigma is not None and self.takes_sigma == "never":
            raise UsageError(f"{self.path.name} is blind: leave sigma out.")
        if self.takes_sigma == "never":
            return self.with_maps(x, None)
        level = sigma_map(0.0 if sigma is None else sigma, x).expand(-1, self.offsets, -1, -1)
        if not self.takes_correlation:
            return self.with_maps(x, level)
        return self.with_maps(x, torch.cat((level, correlation_maps(correlation, level)), 1))

    def with_maps(self, x: Tensor, maps: Tensor | None) -> Tensor:
        """Denoise images, or tiles of them; see `normeq.models.DenoisingNetwork.with_maps`."""
        given = [x]
        if maps is not None:
            given += [maps[:, : self.offsets], maps[:, self.offsets :]][: len(self._names) - 1]
        arrays = [part.detach().to("cpu", torch.float32).numpy() for part in given]
        return torch.from_numpy(self._run(arrays)).to(x)

    def _run(self, arrays: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """Run the file on image and maps, one sample at a time if it takes no more."""
        if self._takes_one and len(arrays[0]) > 1:
            samples = range(len(arrays[0]))
            return np.concatenate(
                [self._run([part[n : n + 1] for part in arrays]) for n in samples]
            )
        try:
            (output,) = self._session.run(
                [self._session.get_outputs()[0].name], dict(zip(self._names, arrays, strict=True))
            )
        except Exception as error:  # onnxruntime has a family of its own
            size = "x".join(map(str, arrays[0].shape))
            raise UsageError(
                f"{self.path.name} does not take images of shape {size} ({_said(error)})."
            ) from error
        if output.shape != arrays[0].shape:
            raise UsageError(
                f"{self.path.name} gives an image of shape {output.shape} for one of shape "
                f"{arrays[0].shape}: a denoiser must keep it."
            )
        result: np.ndarray[Any, Any] = output
        return result

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy, or another process, needs: the file's bytes."""
        return {key: value for key, value in self.__dict__.items() if key != "_session"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _read(self) -> bytes:
        try:
            size = self.path.stat().st_size
            if size > _LARGEST_FILE:
                raise WeightsError(
                    f"{self.path} has {size:,} bytes, more than an ONNX file can have."
                )
            return self.path.read_bytes()
        except OSError as error:
            raise WeightsError(f"{self.path} cannot be read ({reason(error)}).") from error

    def _start(self) -> None:
        """Hand the file to onnxruntime."""
        try:
            import onnxruntime
        except ImportError as error:
            raise UsageError(
                f"{self.path.name}: ONNX files need onnxruntime: pip install 'normeq[onnx]'."
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 4  # what it has to say comes as an exception
        try:
            self._session = onnxruntime.InferenceSession(
                self._data, options, providers=self._providers(onnxruntime)
            )
        except UsageError:
            raise
        except Exception as error:  # onnxruntime has a family of its own
            raise WeightsError(
                f"{self.path} is not an ONNX file that onnxruntime can run ({_said(error)})."
            ) from error
        self._names = [given.name for given in self._session.get_inputs()]

    def _providers(self, onnxruntime: Any) -> list[str]:
        provider = {"auto": "CPU", "cpu": "CPU"}.get(self.device, self.device.upper())
        wanted = f"{provider.partition(':')[0]}ExecutionProvider"
        if wanted not in onnxruntime.get_available_providers():
            raise UsageError(
                f"device {self.device!r} cannot be used: this onnxruntime has no {wanted}."
            )
        return [wanted]

    def _read_header(self) -> OnnxHeader | None:
        text = self._session.get_modelmeta().custom_metadata_map.get(KEY)
        try:
            return None if text is None else OnnxHeader.from_text(text)
        except WeightsError as error:
            raise WeightsError(f"{self.path}: {error}") from error

    def _check_inputs(self, header: OnnxHeader | None) -> None:
        """Refuse inputs that are not images, or not those that the header names."""
        inputs = self._session.get_inputs()
        if header is not None and tuple(self._names) != header.inputs:
            raise WeightsError(
                f"{self.path}: its header is damaged: it names the inputs "
                f"{', '.join(header.inputs)}, and the file has {', '.join(self._names)}."
            )
        if header is None and len(inputs) != 1:
            raise WeightsError(
                f"{self.path} has {len(inputs)} inputs ({', '.join(self._names)[:80]}): a file "
                "that was not written by normeq export must have one, the image."
            )
        for given in inputs:
            if given.type != "tensor(float)" or len(given.shape) != 4:
                raise WeightsError(
                    f"{self.path}: its input {given.name} is a {given.type} of shape "
                    f"{given.shape}, not float32 images (N, C, H, W)."
                )
            if any(isinstance(size, int) for size in given.shape[2:]):
                raise WeightsError(
                    f"{self.path} takes images of a fixed size ({given.shape[2]} x "
                    f"{given.shape[3]}): export it again with free height and width."
                )
        self._takes_one = inputs[0].shape[0] == 1

    def _image_channels(self) -> int:
        channels = self._session.get_inputs()[0].shape[1]
        if channels not in (1, 3):
            raise WeightsError(
                f"{self.path} takes images of {channels} channels: a denoiser takes 1 or 3."
            )
        return int(channels)

    def _measure_law(self, declared: Law | None) -> Law:
        """Return the law that is measured to hold, on one random image."""
        random = torch.Generator().manual_seed(0)
        image = torch.rand(1, self.channels, *_SIZE, generator=random)
        sigma = None if self.takes_sigma == "never" else 0.2
        errors = equivariance_error(self, image, sigma, gains=_GAINS, offsets=_OFFSETS)
        allowed = TOLERANCES[torch.float32]
        measured: Law = "norm" if errors.norm <= allowed else "none"
        if measured == "none" and errors.scale <= allowed:
            measured = "scale"
        if declared in (None, measured) or (declared, measured) == ("scale", "norm"):
            return declared or measured
        if declared in ("norm", "scale"):
            error = errors.norm if declared == "norm" else errors.scale
            _LOG.warning(
                "%s is declared %s-equivariant, but is off by %.1e of the image's spread: it "
                "counts as not equivariant",
                self.path.name, declared, error,
            )  # fmt: skip
        return "none"


def _said(error: Exception) -> str:
    """Return what onnxruntime says, without the codes in front."""
    return reason(error).rpartition(" : ")[2][:300].rstrip(". ")
