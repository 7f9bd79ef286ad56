"""Whatever is passed, the answer is a certificate, a twin, or one sentence."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable

import pytest
import torch
from helpers.network_cases import Of
from torch import nn

import normeq
from normeq.certification import Status, certify
from normeq.errors import NormeqError, UsageError

TARGETS = ("scale-equiv", "norm-equiv", "norm-equiv-wrapped")


def conv(inputs: int = 1, outputs: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, padding=1)


def raising(net, x):
    raise ValueError("trouble of its own")


def looping(net, x):
    while x.abs().max() > 0.5:
        x = 0.9 * x
    return net.conv(x)


def changing_its_input(net, x):
    x[..., 0] = 0
    return net.conv(x.mul_(2))


def counting(net, x):
    net.calls = net.calls + 1
    return net.conv(x) * net.calls


def remembering(net, x):
    net.seen.append(x)
    return net.conv(x) + len(net.seen)


def with_buffer(name: str, value: torch.Tensor, net: nn.Module) -> nn.Module:
    net.register_buffer(name, value)
    return net


def with_attribute(name: str, value: object, net: nn.Module) -> nn.Module:
    setattr(net, name, value)
    return net


def with_hook(net: nn.Sequential) -> nn.Module:
    net[0].register_forward_hook(lambda module, args, out: out + 1)
    return net


def on_sparse(net, x):
    return torch.sparse.mm(net.matrix, x[0, 0])[None, None]


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "old weight norm": lambda: nn.Sequential(nn.utils.weight_norm(conv(1, 2)), conv(2, 1)),
    "raises": lambda: Of(raising, conv=conv()),
    "loop on values": lambda: Of(looping, conv=conv()),
    "changes its input": lambda: Of(changing_its_input, conv=conv()),
    "updates a buffer": lambda: with_buffer("calls", torch.zeros(()), Of(counting, conv=conv())),
    "remembers": lambda: with_attribute("seen", [], Of(remembering, conv=conv())),
    "list and dict": lambda: Of(lambda net, x: {"a": [net.conv(x), 2], "b": None}, conv=conv()),
    "nothing": lambda: Of(lambda net, x: None),
    "complex": lambda: Of(lambda net, x: torch.fft.rfft2(x)),
    "whole numbers": lambda: Of(lambda net, x: (x > 0.5).long()),
    "values decide the shape": lambda: Of(lambda net, x: x[x > 0.5]),
    "half precision": lambda: nn.Sequential(conv(1, 2), nn.ReLU(), conv(2, 1)).half(),
    "hook": lambda: with_hook(nn.Sequential(conv(1, 2), conv(2, 1))),
    "shared": lambda: nn.Sequential(*[conv()] * 3),
    "module dict": lambda: Of(lambda net, x: net.parts["a"](x), parts=nn.ModuleDict({"a": conv()})),
    "script": lambda: torch.jit.script(nn.Sequential(conv(), nn.ReLU())),
    "data parallel": lambda: nn.DataParallel(conv()),
    "quantized": lambda: torch.ao.quantization.quantize_dynamic(
        nn.Sequential(nn.Flatten(), nn.Linear(64, 2)), {nn.Linear}
    ),
    "lock": lambda: with_attribute("lock", threading.Lock(), Of(lambda net, x: x)),
    "sparse": lambda: with_buffer("matrix", torch.eye(8).to_sparse(), Of(on_sparse)),
    "lazy": lambda: nn.LazyConv2d(1, 3),
    "meta": lambda: conv().to("meta"),
    "random": lambda: Of(lambda net, x: x + torch.randn_like(x)),
    "not a number": lambda: Of(lambda net, x: x / 0 * 0),
    "not a network": lambda: len,
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.filterwarnings("ignore")
def test_every_answer_is_for_people(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = NETWORKS[name]()
    image = torch.rand(1, 1, 8, 8, dtype=torch.half if name == "half precision" else None)
    before = image.clone()
    for ask in (certify, *(lambda net, x, to=to: normeq.convert(net, to, x) for to in TARGETS)):
        with contextlib.suppress(NormeqError):
            ask(net, image)
        assert torch.equal(image, before)


@pytest.mark.filterwarnings("ignore")
def test_what_is_said() -> None:
    image = torch.rand(1, 1, 8, 8)
    with pytest.raises(UsageError, match="returns NoneType, which contains no tensor"):
        certify(NETWORKS["nothing"](), image)
    with pytest.raises(UsageError, match="cannot be copied"):
        certify(NETWORKS["lock"](), image)
    with pytest.raises(UsageError, match="call it once first"):
        certify(NETWORKS["lazy"](), image)
    with pytest.raises(UsageError, match="contains a ScriptModule"):
        normeq.convert(NETWORKS["script"](), "scale-equiv", image)
    with pytest.raises(UsageError, match=r"ValueError at test_nasty_networks\.py:\d+: trouble"):
        certify(NETWORKS["raises"](), image)


def test_what_the_values_decide_is_unknown(capfd: pytest.CaptureFixture[str]) -> None:
    looped = certify(NETWORKS["loop on values"](), torch.rand(1, 1, 8, 8))
    assert looped.norm is Status.UNKNOWN
    assert looped.measured["scale"] > 0
    assert {culprit.line.split(":")[0] for culprit in looped.culprits} == {"test_nasty_networks.py"}
    assert f"unknown, measured error {looped.measured['shift']:.1e}" in looped.table()
    assert capfd.readouterr() == ("", "")
