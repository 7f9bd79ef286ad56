"""What cannot be converted is refused with the line of the user's code, or can be wrapped."""

from __future__ import annotations

import pytest
import torch
from helpers.soundness import assert_sound
from torch import nn

from normeq.certification import Status
from normeq.conversion import convert
from normeq.errors import UsageError


def example(seed: int = 0, size: int = 16) -> torch.Tensor:
    return torch.rand(1, 1, size, size, generator=torch.Generator().manual_seed(seed))


class Filled(nn.Module):
    """Puts a constant beside the features, which follow the image."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat((self.conv(x), torch.ones_like(x)), 1).amax(1, keepdim=True)


def test_what_has_no_counterpart_is_refused_by_name() -> None:
    named = r"Filled \(test_refusals.py:\d+\).*cat in the network itself \(test_refusals.py:\d+\)"
    with pytest.raises(UsageError, match=f"{named}.*norm-equiv-wrapped"):
        convert(Filled(), "norm-equiv", example(size=8))


class Undecided(nn.Module):
    """Does one thing or the other, as the values decide."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x) if x.max() > 1 else torch.sigmoid(x)


class Refusing(nn.Module):
    """Has a forward pass in its author's own source."""

    def forward(self, x: torch.Tensor, sigma: torch.Tensor | None = None) -> torch.Tensor:
        if sigma is not None:
            return x * sigma.reshape(len(x), 1, 1, 1)
        return x.argmax(1)


@pytest.mark.parametrize(
    ("build", "to", "extra", "message"),
    [
        (Undecided, "norm-equiv", (), r"it cannot be traced \(.*\) at test_refusals\.py:\d+"),
        (Refusing, "scale-equiv", (), "int64 numbers"),
        (Refusing, "norm-equiv-wrapped", (), "int64 numbers"),
        (
            Refusing,
            "norm-equiv-local",
            (torch.tensor([0.1]),),
            r"into a map \(test_refusals\.py:\d+",
        ),
    ],
)
def test_a_refusal_names_the_line_of_the_users_code(build, to: str, extra, message: str) -> None:
    with pytest.raises(UsageError, match=rf"{build.__name__} \(test_refusals\.py:\d+\).*{message}"):
        convert(build(), to, (example(), *extra))


@pytest.mark.parametrize("to", ["norm-equiv-wrapped", "norm-equiv-local"])
def test_what_cannot_be_traced_can_be_wrapped(to: str) -> None:
    twin, report = convert(Undecided(), to, example())
    assert report.certificate.norm is Status.PROVEN
    assert_sound(twin, report.certificate, example(1).double())


def test_other_refusals() -> None:
    with pytest.raises(UsageError, match="not a variant to convert to"):
        convert(nn.Conv2d(1, 1, 1), "equivariant")
    flat = nn.Sequential(nn.Conv2d(1, 2, 1), nn.Flatten())
    with pytest.raises(UsageError, match="is not an image"):
        convert(flat, "norm-equiv-residual", example())
