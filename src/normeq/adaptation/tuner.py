"""The tuning of one network: steps, checks on held-out tiles, the best weights so far."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from normeq.adaptation.judge import Gain, Judge
from normeq.adaptation.tile_batch import output_of
from normeq.adaptation.tile_stream import TileStream
from normeq.models import DenoisingNetwork
from normeq.nn import fuse
from normeq.training.checkpoint import Checkpoint

# Chosen on photographs and textures that are in no test set: see docs/adapt.md.
_LESSON_RATE = 5e-4
_RATE = 2e-4
_BETAS = (0.9, 0.99)
_WARMUP = 10
# Longer gradients are shortened to this.
_CLIP = 1.0
# Share of the past in the average of the weights, which is what is judged and kept.
_MEMORY = 0.9


class Tuner:
    """A copy of a network that is being tuned; the original stays as it is.

    The first half of the steps are lessons, if there is a teacher. The second half starts from the
    best weights so far, which are the original ones if the lessons gained nothing for certain.

    Parameters
    ----------
    net
        The network to start from.
    stream
        Where the tiles of each step come from.
    judge
        What judges the weights.
    steps
        How many there are; the rate falls to zero at the end of each half.
    saved
        A state to continue from.
    """

    def __init__(
        self,
        net: DenoisingNetwork,
        stream: TileStream,
        judge: Judge,
        steps: int,
        saved: Checkpoint | None = None,
    ) -> None:
        self._stream = stream
        self._judge = judge
        self._steps = steps
        self._lessons = steps // 2 if stream.has_lessons else 0
        self._original = net
        self._network = copy.deepcopy(net).train().requires_grad_(True)
        self._network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._average = copy.deepcopy(self._network).eval().requires_grad_(False)
        # The twins share the parameters of the networks, and take less time.
        self._tuned, self._judged = fuse(self._network), fuse(self._average)
        self._parameters = list(self._network.parameters())
        self._optimizer = torch.optim.Adam(self._parameters, betas=_BETAS)
        self.step = 0
        #: The weights that gain most for certain, and their gain; None while nothing is gained.
        self.best: dict[str, Tensor] | None = None
        self.gain: Gain | None = None
        #: The gain of the last check, whether it is certain or not.
        self.last = Gain(0.0, 0.0, judge.rmse_before)
        if saved is not None:
            self._restore(saved)

    def advance(self) -> None:
        """Take one step."""
        is_lesson = self.step < self._lessons
        if self.step == self._lessons:
            self._start_again()
        batch = self._stream.batch(self.step, is_lesson)
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate()
        device = self._parameters[0].device
        with torch.autocast(device.type, torch.bfloat16, enabled=self._halves(device)):
            output = output_of(self._tuned, batch.given)
        target, weight = (each.to(output.device) for each in (batch.target, batch.weight))
        error = weight * (output.to(self._parameters[0].dtype) - target).square()
        (error.sum() / weight.sum().clamp_min(1.0)).backward()
        norm = nn.utils.clip_grad_norm_(self._parameters, _CLIP)
        if torch.isfinite(norm):
            self._optimizer.step()
        self._optimizer.zero_grad()
        self.step += 1
        taken = self.step - (0 if is_lesson else self._lessons)
        self._follow(min(_MEMORY, taken / (taken + 1)))

    def _start_again(self) -> None:
        """Go back to the best weights, and forget how the optimiser got where it is."""
        weights = self.best or self._original.state_dict()
        self._network.load_state_dict(weights)
        self._average.load_state_dict(weights)
        self._optimizer.state.clear()

    def _rate(self) -> float:
        """Return the rate of the next step: it rises at first, and falls to zero in the end."""
        if self.step < self._lessons:
            taken, steps, rate = self.step, self._lessons, _LESSON_RATE
        else:
            taken, steps, rate = self.step - self._lessons, self._steps - self._lessons, _RATE
        rise = min(1.0, (taken + 1) / _WARMUP)
        fall = 0.5 * (1 + math.cos(math.pi * min(1.0, taken / steps)))
        return rate * rise * fall

    def _halves(self, device: torch.device) -> bool:
        """Tell whether the convolutions of a step run in bfloat16, if that is faster here."""
        if self._parameters[0].dtype != torch.float32:
            return False
        on_cpu = device.type == "cpu"
        return torch.cpu._is_avx512_bf16_supported() if on_cpu else device.type == "cuda"

    @torch.no_grad()
    def _follow(self, memory: float) -> None:
        for kept, new in zip(self._average.parameters(), self._parameters, strict=True):
            kept.lerp_(new, 1 - memory)

    def check(self) -> Gain:
        """Judge the weights, and keep them if they gain more for certain than those before."""
        self.last = self._judge.gain(self._judged)
        least = 0.0 if self.gain is None else self.gain.certain
        if math.isfinite(self.last.certain) and self.last.certain > least:
            self.gain = self.last
            self.best = copy.deepcopy(self._average.state_dict())
        return self.last

    # Checkpoints -----------------------------------------------------------------------------

    def to_checkpoint(self) -> Checkpoint:
        """Return a copy of everything that the next step depends on."""
        return Checkpoint(
            {name: tensor.detach().clone() for name, tensor in self._tensors()},
            {
                "step": self.step,
                "gain": None if self.gain is None else vars(self.gain),
                "last": vars(self.last),
            },
        )

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        parts = {"network": self._network.state_dict(), "average": self._average.state_dict()}
        for part, state in {**parts, "best": self.best or {}}.items():
            yield from ((f"{part}.{name}", tensor) for name, tensor in state.items())
        for index, moments in self._optimizer.state_dict()["state"].items():
            yield from ((f"optimizer.{index}.{name}", each) for name, each in moments.items())

    def _restore(self, saved: Checkpoint) -> None:
        self._network.load_state_dict(saved.part("network"))
        self._average.load_state_dict(saved.part("average"))
        self.best = saved.part("best") or None
        self.step = saved.values["step"]
        gain: dict[str, Any] | None = saved.values["gain"]
        self.gain = None if gain is None else Gain(**gain)
        self.last = Gain(**saved.values["last"])
        state = self._optimizer.state_dict()
        for index in range(len(self._parameters)):
            moments = saved.part(f"optimizer.{index}")
            if moments:
                state["state"][index] = moments
        self._optimizer.load_state_dict(state)
