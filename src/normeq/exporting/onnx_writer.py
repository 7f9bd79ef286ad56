"""ONNX files: one graph for all sizes, a header, and nothing of the machine that wrote them."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from normeq.certification.tracing import TRACER_LOCK, quiet_tracer
from normeq.denoising.onnx_header import KEY, OnnxHeader
from normeq.denoising.onnx_network import OnnxNetwork
from normeq.errors import UsageError, reason
from normeq.exporting.agreement import check_agreement
from normeq.exporting.open_sizes import ExportedNetwork, trace_open

#: The version of ONNX's operators: the oldest in which torch writes, for old readers.
OPSET = 18
_AXES = ("batch", None, "height", "width")


def _onnx_bytes(net: ExportedNetwork) -> bytes:
    """Return a network as an ONNX file with free batch, height and width."""
    onnx = _library()
    program = trace_open(net)
    try:
        with TRACER_LOCK, warnings.catch_warnings(), quiet_tracer():
            warnings.simplefilter("ignore")
            translated = torch.onnx.export(
                program,
                input_names=list(net.inputs),
                output_names=["denoised"],
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
        assert translated is not None
        model = translated.model_proto
    except Exception as error:  # the translation may fail in any way
        raise UsageError(f"{net.name} cannot be written as ONNX ({reason(error)}).") from error
    _clean(model)
    _name_axes(model)
    model.producer_name = "normeq"
    onnx.helper.set_model_props(model, {KEY: header_of(net).to_text()})
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


def checked_onnx(net: ExportedNetwork) -> bytes:
    """Return a network as an ONNX file whose output in onnxruntime equals PyTorch's."""
    data = _onnx_bytes(net)
    written = OnnxNetwork(f"{net.name}.onnx", data=data)

    def run(image: Tensor, *maps: Tensor) -> Tensor:
        return written.with_maps(image, torch.cat(maps, 1) if maps else None)

    check_agreement(net, run)
    return data


def header_of(net: ExportedNetwork) -> OnnxHeader:
    """Return what a file says of the network in it."""
    return OnnxHeader(
        inputs=net.inputs,
        channels=net.channels,
        takes_sigma=net.takes_sigma,
        offsets=net.offsets,
        stride=net.stride,
        receptive_field=net.receptive_field,
        law=net.law,
        opset=OPSET,
        bytes_per_pixel=net.bytes_per_pixel(),
        digest=net.digest,
        name=net.name,
    )


def _clean(model: Any) -> None:
    """Remove what torch records of the source: paths of this machine, names of shapes."""
    del model.metadata_props[:]
    for graph in (model.graph, *model.functions):
        del graph.metadata_props[:]
        del graph.value_info[:]
        for node in graph.node:
            del node.metadata_props[:]
            node.doc_string = ""
    for tensor in model.graph.initializer:
        del tensor.metadata_props[:]
        tensor.doc_string = ""


def _name_axes(model: Any) -> None:
    for value in (*model.graph.input, *model.graph.output):
        del value.metadata_props[:]
        for dim, name in zip(value.type.tensor_type.shape.dim, _AXES, strict=True):
            if name is not None:
                dim.dim_param = name


def _library() -> Any:
    try:
        import onnx
        import onnxruntime  # noqa: F401 - what is written is run at once
        import onnxscript  # noqa: F401 - torch writes with it
    except ImportError as error:
        raise UsageError(
            f"ONNX needs the package {error.name}: pip install 'normeq[onnx]'."
        ) from error
    return onnx
