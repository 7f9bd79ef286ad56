"""Tracing without side effects: threads, forked and spawned processes, rounding of sizes."""

from __future__ import annotations

import math
import multiprocessing
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, fx, nn

import normeq
from normeq.nn.fast.graph import GraphEditor, trace


def network() -> nn.Module:
    torch.manual_seed(0)
    return normeq.create("unet", widths=(4, 6), blocks=1).eval()


def test_threads_fold_and_run_networks_at_the_same_time() -> None:
    net, image = network(), torch.rand(1, 1, 16, 16)
    expected = net(image).detach()
    start = threading.Barrier(8)

    def work(number: int) -> Tensor:
        start.wait()
        for _ in range(5):
            out = normeq.fold(net)(image) if number % 2 else net(image)
        return out.detach()

    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(work, range(8)))
    for out in outputs:
        assert torch.allclose(out, expected, atol=1e-5)
    assert torch.equal(net(image), expected)


def test_a_trace_changes_no_class() -> None:
    before = nn.Module.__call__, nn.Module.__getattr__
    seen = []

    class Watch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            seen.append((nn.Module.__call__, nn.Module.__getattr__))
            return x + 1

    net = Watch()
    trace(net, lambda layer: True)
    assert seen == [before]
    assert type(net) is Watch


def fold_and_compare() -> None:
    net, image = network(), torch.rand(1, 1, 16, 16)
    ok = torch.allclose(normeq.fold(net)(image), net(image), atol=1e-5)
    sys.exit(0 if ok else 1)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes_fold_too(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    normeq.fold(network())  # so that a forked child inherits whatever folding leaves behind
    child = multiprocessing.get_context(method).Process(target=fold_and_compare)
    child.start()
    child.join(120)
    assert child.exitcode == 0


def test_parameters_and_sizes_are_recorded() -> None:
    class Padded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.rand(1, 1, 1, 1))

        def forward(self, x: Tensor) -> Tensor:
            missing = math.ceil(x.shape[-1] / 8) * 8 - x.shape[-1]
            return nn.functional.pad(x, (0, missing)) * self.weight.softmax(0)

    net = Padded()
    again = fx.GraphModule(net, trace(net, lambda layer: True))
    assert again(torch.rand(1, 1, 4, 13)).shape[-1] == 16
    out = again(torch.rand(1, 1, 4, 5))
    assert out.shape[-1] == 8
    assert out.requires_grad


def test_edits_are_made_in_place() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.ReLU(), nn.Sigmoid()

        def forward(self, x: Tensor) -> Tensor:
            return torch.tanh(self.second(self.first(x)))

    net = Two()
    editor = GraphEditor(net, trace(net, lambda layer: True))
    _, first, second, bent, _ = editor.nodes
    editor.drop(first, first.args[0])
    editor.use_layer(second, nn.Softplus())
    editor.use_function(bent, torch.mul, (second, 2.0))
    x = torch.rand(5) - 0.5
    finished = editor.finish()
    assert torch.allclose(finished(x), 2 * nn.functional.softplus(x))
    assert [name for name, _ in finished.named_children()] == ["second_softplus"]
