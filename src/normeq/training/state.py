"""The state of a run between two steps, and the step itself."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, cast

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim import Optimizer

from normeq.errors import UsageError
from normeq.models import Network, Wrapped
from normeq.nn import fuse
from normeq.nn.fast.compilation import compiled
from normeq.training.checkpoint import Checkpoint
from normeq.training.initial import initial_network, new_network
from normeq.training.muon import Muon, is_matrix
from normeq.training.recipe import NetworkSettings, Optimization, Recipe
from normeq.training.samples import SampleBatch
from normeq.training.schedule import ema_decay, learning_rate


def reconstruction_loss(output: Tensor, batch: SampleBatch, recipe: Optimization) -> Tensor:
    """Mean over samples of the L1 or squared error, each over a power of its noise level.

    The squared error of a good denoiser grows about like the noise level; divided by it, weak and
    strong noise weigh equally, as they do in the mean of a PSNR. Gradients, a product of error and
    image, are about equally long after a division by its root.
    """
    error = output - batch.target
    error = error.abs() if recipe.loss == "l1" else error.square()
    per_sample = error.flatten(1).mean(1)
    return (per_sample / batch.level**recipe.balance).mean()


class State:
    """A network with its optimiser, its average and its position in the data."""

    def __init__(
        self,
        recipe: Recipe,
        accelerator: Accelerator,
        *,
        compile: bool = False,
        saved: Checkpoint | None = None,
    ) -> None:
        settings = recipe.optimization
        self._recipe = recipe
        self._accelerator = accelerator
        self._dtype: torch.dtype = getattr(torch, settings.dtype)
        torch.manual_seed(recipe.seed)
        network = initial_network(recipe.network) if saved is None else new_network(recipe.network)
        self.network = network.to(accelerator.device, self._dtype).train()
        if settings.channels_last:
            self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.average: Network | Wrapped | None = None
        if settings.ema is not None:
            self.average = copy.deepcopy(self.network)
            self.average.requires_grad_(False)
        self._optimizers = _optimizers(list(self.network.parameters()), settings)
        # The twin shares its parameters with the network and takes less time.
        twin = compiled(fuse(self.network)) if compile else fuse(self.network)
        self._parallel = cast("nn.Module", accelerator.prepare_model(twin))
        self.step = 0
        #: Samples drawn so far: the index of the next one.
        self.samples = 0
        #: Time spent on the run, over all its sessions.
        self.seconds = 0.0
        self.best: float | None = None
        #: What is known of the weights it began with, if they were not random.
        self.started_from: dict[str, Any] | None = network.card.get("started_from")
        #: Other recipes that it followed before, each with the step until which it did.
        self.earlier: list[dict[str, Any]] = []
        if saved is not None:
            self._restore(saved)

    @property
    def judged(self) -> Network | Wrapped:
        """The network that is validated and kept: the average where there is one."""
        return self.network if self.average is None else self.average

    def on_device(self, batch: SampleBatch) -> SampleBatch:
        """Move a batch to where the network is."""
        return batch.to(self._accelerator.device, self._dtype)

    @torch.no_grad()
    def with_lessons(self, batch: SampleBatch) -> SampleBatch:
        """Replace the noisy targets of overstated samples by the kept network's result for them."""
        overstated = batch.overstated > 0
        if not overstated.any():
            return batch
        rows = batch.rows(overstated)
        noisier = replace(rows, noisy=rows.target)
        target = batch.target.clone()
        target[overstated] = self.judged(*noisier.arguments(self._recipe.network))
        return replace(batch, target=target)

    def update(self, batch: SampleBatch) -> tuple[Tensor, Tensor]:
        """Take one step on this process's share of a batch; return its loss and gradient norm."""
        settings = self._recipe.optimization
        batch = self.with_lessons(batch)
        rate = learning_rate(self.step, settings)
        for group in (group for each in self._optimizers for group in each.param_groups):
            group["lr"] = rate
        # Not through the Accelerator, whose precision is fixed for the whole process.
        in_bf16 = settings.mixed_precision == "bf16"
        with torch.autocast(batch.noisy.device.type, torch.bfloat16, enabled=in_bf16):
            output = self._parallel(*batch.arguments(self._recipe.network))
        loss = reconstruction_loss(output.to(self._dtype), batch, settings)
        self._accelerator.backward(loss)
        limit = float("inf") if settings.clip is None else settings.clip
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), limit)
        for optimizer in self._optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if self.average is not None and settings.ema is not None:
            self._move_average(1 - ema_decay(self.step, settings.ema))
        self.step += 1
        self.samples += settings.batch
        return loss.detach(), norm.detach()

    @torch.no_grad()
    def _move_average(self, weight: float) -> None:
        assert self.average is not None
        for kept, new in zip(self.average.parameters(), self.network.parameters(), strict=True):
            kept.lerp_(new, weight)
        for held, current in zip(self.average.buffers(), self.network.buffers(), strict=True):
            held.copy_(current)

    def to_checkpoint(self) -> Checkpoint:
        """Return a copy of everything that the next step depends on."""
        tensors = {f"network.{name}": t for name, t in self.network.state_dict().items()}
        if self.average is not None:
            tensors |= {f"average.{name}": t for name, t in self.average.state_dict().items()}
        for order, optimizer in enumerate(self._optimizers):
            for index, moments in optimizer.state_dict()["state"].items():
                tensors |= {f"optimizer.{order}.{index}.{name}": t for name, t in moments.items()}
        tensors["random.torch"] = torch.get_rng_state()
        return Checkpoint(
            {name: tensor.detach().clone() for name, tensor in tensors.items()},
            {
                "step": self.step,
                "samples": self.samples,
                "seconds": self.seconds,
                "best": self.best,
                "recipe": self._recipe.model_dump(mode="json"),
                "started_from": self.started_from,
                "earlier": self.earlier,
            },
        )

    def _restore(self, saved: Checkpoint) -> None:
        """Take over the state that a checkpoint holds."""
        recipe, before = self._recipe.model_dump(mode="json"), saved.values["recipe"]
        held = {**NetworkSettings(**before["network"]).model_dump(mode="json"), "init": None}
        wanted = {**recipe["network"], "init": None}
        if held != wanted:
            raise UsageError(
                f"the checkpoint contains the network {held}, and the recipe asks for {wanted}; "
                "resume with the same network."
            )
        self.started_from, self.earlier = saved.values["started_from"], saved.values["earlier"]
        if before != recipe:
            self.earlier = [*self.earlier, {"until": saved.values["step"], "recipe": before}]
        self.network.load_state_dict(saved.part("network"))
        if self.average is not None:
            # A run that begins to average only now starts from its present weights.
            self.average.load_state_dict(saved.part("average") or saved.part("network"))
        for order, optimizer in enumerate(self._optimizers):
            _restore_moments(optimizer, saved.part(f"optimizer.{order}"))
        torch.set_rng_state(saved.tensors["random.torch"])
        self.step = saved.values["step"]
        self.samples = saved.values["samples"]
        self.seconds = saved.values["seconds"]
        self.best = saved.values["best"]


def _optimizers(parameters: list[nn.Parameter], settings: Optimization) -> list[Optimizer]:
    """Return the optimisers: with "muon", Muon steps the kernels and Adam everything else."""
    by_muon = [p for p in parameters if settings.optimizer == "muon" and is_matrix(p)]
    stepped = {id(p) for p in by_muon}
    by_adam = [p for p in parameters if id(p) not in stepped]
    rate = settings.learning_rate
    optimizers: list[Optimizer] = [Muon(by_muon, rate)] if by_muon else []
    if by_adam:
        optimizers.append(torch.optim.Adam(by_adam, rate, settings.betas, fused=True))
    return optimizers


def _restore_moments(optimizer: Optimizer, saved: dict[str, Tensor]) -> None:
    """Give back to an optimiser what it remembers of each parameter's gradients."""
    if isinstance(optimizer, Muon) != all(name.endswith(".mean") for name in saved):
        raise UsageError(
            "the checkpoint was written with another optimiser; resume with the same "
            "optimization.optimizer."
        )
    weights = [p for group in optimizer.param_groups for p in group["params"]]
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in saved.items():
        index, key = name.split(".")
        moments.setdefault(int(index), {})[key] = _laid_out_like(weights[int(index)], tensor)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})


def _laid_out_like(weights: Tensor, moment: Tensor) -> Tensor:
    """Lay out a moment in memory as its weights: the fused optimiser walks both as they lie."""
    if moment.shape != weights.shape:
        return moment.clone()
    return torch.empty_like(weights, requires_grad=False).copy_(moment)
