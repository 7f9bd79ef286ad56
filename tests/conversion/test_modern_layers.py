"""Norms, gates and attention of today's networks: proven, measured and converted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.soundness import assert_sound
from torch import Tensor, nn
from torch.nn import functional as F

from normeq.certification import Status, certify
from normeq.conversion import convert
from normeq.nn import Enclosed

WIDTH = 4


class Gated(nn.Module):
    """Features times a gate that is computed from them, by a given function."""

    def __init__(self, gate: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.weigh, self.gate = nn.Conv2d(WIDTH, WIDTH, 1), gate

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.weigh(x))


class SimpleGate(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, 1)
        return a * b


class SqueezeAndExcitation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(WIDTH, 2, 1), nn.ReLU(), nn.Conv2d(2, WIDTH, 1),
            nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights(x)


class ResponseNorm(nn.Module):
    """GRN of ConvNeXt V2."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma, self.beta = (nn.Parameter(torch.rand(1, WIDTH, 1, 1)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        size = torch.norm(x, p=2, dim=(2, 3), keepdim=True)
        return self.gamma * (x * size / (size.mean(1, keepdim=True) + 1e-6)) + self.beta + x


class ScaledBranch(nn.Module):
    """A branch with layer norm over channels and a small gain for each, as in ConvNeXt."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
        self.gamma = nn.Parameter(0.1 * torch.rand(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x + (self.gamma * self.mix(self.norm(x.movedim(1, -1)))).movedim(-1, 1)


class RootMeanSquareNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.movedim(1, -1)).movedim(-1, 1)


class WindowAttention(nn.Module):
    """Attention within windows, which lie along the batch axis, with a mask passed to it."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = MaskedAttention()

    def forward(self, x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        cells = x.reshape(n, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1)
        mask = -100.0 * torch.ones(16, 16).triu(1)
        out = self.inner(cells.reshape(-1, 16, c), mask).reshape(cells.shape)
        return x + out.permute(0, 5, 1, 3, 2, 4).reshape(x.shape)


class MaskedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        query, key, value = self.mix(tokens).chunk(3, -1)
        return self.out((query @ key.mT / WIDTH**0.5 + mask).softmax(-1) @ value)


class TransposedAttention(nn.Module):
    """Attention between channels, as in Restormer."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Conv2d(WIDTH, 3 * WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.mix(x).flatten(2).chunk(3, 1)
        logits = F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT
        return x + (logits.softmax(-1) @ value).reshape(x.shape)


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "GELU": nn.GELU,
    "sigmoid gate": lambda: Gated(torch.sigmoid),
    "SiLU gate": lambda: Gated(F.silu),
    "SimpleGate": lambda: nn.Sequential(nn.Conv2d(WIDTH, 2 * WIDTH, 1), SimpleGate()),
    "GLU": lambda: nn.Sequential(nn.Conv2d(WIDTH, 2 * WIDTH, 1), nn.GLU(1)),
    "squeeze and excitation": SqueezeAndExcitation,
    "batch norm": lambda: nn.BatchNorm2d(WIDTH),
    "batch norm of the batch": lambda: nn.BatchNorm2d(WIDTH, track_running_stats=False),
    "layer norm": lambda: nn.LayerNorm([WIDTH, 8, 8]),
    "layer norm and layer scale": lambda: nn.Sequential(ScaledBranch(), ScaledBranch()),
    "RMS norm": RootMeanSquareNorm,
    "GRN": ResponseNorm,
    "window attention": WindowAttention,
    "transposed attention": TransposedAttention,
}


def network(name: str) -> nn.Module:
    torch.manual_seed(0)
    first, last = (nn.Conv2d(*widths, 3, padding=1) for widths in ((1, WIDTH), (WIDTH, 1)))
    return nn.Sequential(first, LAYERS[name](), last)


@pytest.mark.parametrize("name", LAYERS)
def test_proven_measured_and_converted(name: str) -> None:
    net = network(name)
    image = torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    broken = certify(net, image)
    assert (broken.scale, broken.shift) == (Status.BROKEN, Status.BROKEN)
    for to in ("norm-equiv", "norm-equiv-residual"):
        twin, report = convert(net, to, image)
        assert report.certificate.norm is Status.PROVEN
        assert twin(image).shape == image.shape
        assert_sound(twin.eval(), report.certificate, image.double())


def test_the_mask_of_an_attention_is_not_taken_for_features() -> None:
    twin, _ = convert(network("window attention"), "norm-equiv-residual", torch.rand(1, 1, 8, 8))
    (enclosed,) = (m for m in twin.modules() if isinstance(m, Enclosed))
    assert isinstance(enclosed.inner, MaskedAttention)
    assert enclosed.fixed == (1,)


@pytest.mark.parametrize("shape", [(1, 1, 40), (1, 1, 4, 6, 8)], ids=["signal", "volume"])
def test_the_local_form_of_signals_and_volumes(shape: tuple[int, ...]) -> None:
    conv = nn.Conv1d if len(shape) == 3 else nn.Conv3d
    net = nn.Sequential(conv(1, 4, 3, padding=1), nn.Sigmoid(), conv(4, 1, 3, padding=1))
    image = torch.rand(shape, generator=torch.Generator().manual_seed(1))
    twin, report = convert(net, "norm-equiv-local", image)
    assert report.certificate.norm is Status.PROVEN
    assert_sound(twin, report.certificate, image.double())
