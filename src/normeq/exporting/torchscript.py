"""TorchScript from a trace with open sizes, for programs that cannot run torch.export files."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, fx
from torch.fx.graph import CodeGen


def torchscript_bytes(program: torch.export.ExportedProgram) -> bytes:
    """Return a traced network as a TorchScript file.

    `torch.jit.trace` would fix all sizes that a network computes with; the graph of torch.export
    has them open, and is plain enough to be compiled.

    Parameters
    ----------
    program
        What `normeq.exporting.open_sizes.trace_open` returned.
    """
    traced = program.module()
    assert isinstance(traced, fx.GraphModule)
    graph = traced.graph
    graph.set_codegen(CodeGen())  # arguments as they are, not as trees
    _use_plain_calls(graph)
    buffer = io.BytesIO()
    with _permitted():
        scripted = torch.jit.script(fx.GraphModule(traced, graph))
        torch.jit.save(torch.jit.freeze(scripted.eval()), buffer)
    return buffer.getvalue()


def load_torchscript(data: bytes) -> Callable[..., Tensor]:
    """Return the network of a TorchScript file."""
    with _permitted():
        network: Callable[..., Tensor] = torch.jit.load(io.BytesIO(data))
    return network


@contextmanager
def _permitted() -> Iterator[None]:
    """Silence the warning that TorchScript is deprecated: older programs need it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _use_plain_calls(graph: fx.Graph) -> None:
    """Name operations as TorchScript knows them, and let indices be made where the image is."""
    images = graph.find_nodes(op="placeholder")
    with graph.inserting_after(images[-1]):
        device = graph.call_function(getattr, (images[0], "device"))
    for node in list(graph.nodes):
        if node.op == "call_module":  # the guards of torch.export
            graph.erase_node(node)
        elif node.op == "output":
            (values,) = node.args
            node.args = (values[0],) if isinstance(values, list | tuple) else (values,)
        elif isinstance(node.target, torch._ops.OpOverload):
            _use_plain_call(node, device)


def _use_plain_call(node: fx.Node, device: fx.Node) -> None:
    assert isinstance(node.target, torch._ops.OpOverload)
    is_size = node.target is torch.ops.aten.sym_size.int
    node.target = torch.ops.aten.size if is_size else node.target.overloadpacket
    options = {name: value for name, value in node.kwargs.items() if name != "pin_memory"}
    node.kwargs = options | ({"device": device} if "device" in options else {})
