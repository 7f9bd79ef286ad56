"""The training loop: steps, validations and checkpoints, in one process or many."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from statistics import fmean

import torch
from accelerate import Accelerator
from torch import Tensor

import normeq
from normeq._support.atomic import replacing
from normeq.errors import NormeqError, UsageError, writing
from normeq.images.folder import Folder, read_folder
from normeq.metrics import psnr
from normeq.training import checkpoint
from normeq.training.data import Patches, prefetch
from normeq.training.dead_relus import watching_relus
from normeq.training.interruption import Stopped, stop_requests
from normeq.training.log import Log
from normeq.training.recipe import Recipe
from normeq.training.recipe_file import changes
from normeq.training.samples import SampleBatch
from normeq.training.schedule import learning_rate
from normeq.training.state import State
from normeq.training.summary import DATA, FILES, NETWORK, TrainingSummary
from normeq.training.validation_set import conditions, noisy_images


class DivergedError(NormeqError):
    """A run whose loss, gradient or output is NaN or infinite."""


def train(
    recipe: Recipe,
    data: Path,
    out: Path,
    *,
    validation: Path | None = None,
    resume: bool = False,
    threads: int | None = None,
    compile: bool = False,
) -> TrainingSummary:
    """Train a network as a recipe says, on a folder of images, into a run folder.

    The run folder gets ``best.safetensors`` and ``last.safetensors``, the recipe, CSV and
    TensorBoard logs, a curve, and the checkpoints from which `resume` continues, bit for bit.

    Parameters
    ----------
    recipe
        What to compute; see `normeq.training.load_recipe`.
    data
        Folder of clean training images.
    out
        Run folder; must not hold a run yet unless `resume`.
    validation
        Folder of clean images for the validation PSNR; without it, only the last weights are kept.
    resume
        Continue from the newest checkpoint of the run folder.
    threads
        Threads for the network; torch's own choice (OMP_NUM_THREADS) by default.
    compile
        Whether the network goes through `torch.compile`.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    saved = checkpoint.newest(out / "checkpoints") if resume else None
    if saved is None and checkpoint.stored(out / "checkpoints"):
        raise UsageError(
            f"'{out}' already contains a run; continue it with --resume, or choose another --out."
        )
    accelerator = Accelerator()
    processes = accelerator.num_processes
    if recipe.optimization.batch % processes:
        raise UsageError(
            f"a batch of {recipe.optimization.batch} cannot be shared by {processes} processes: "
            "optimization.batch must be a multiple of their number."
        )
    state = State(recipe, accelerator, compile=compile, saved=saved)
    images = read_folder(data, recipe.network.channels, recipe.data.patch)
    held_out = read_folder(validation, recipe.network.channels) if validation else None
    if accelerator.is_main_process:
        with writing(out):
            out.mkdir(parents=True, exist_ok=True)
        with replacing(out / "recipe.json") as temporary:
            temporary.write_text(recipe.model_dump_json(indent=2) + "\n", encoding="utf-8")
    accelerator.print(
        f"training on {images}, validating on {held_out or 'nothing'}, processes: {processes}"
    )
    if saved is not None:
        changed = "".join(f", {change}" for change in changes(saved.values["recipe"], recipe))
        accelerator.print(f"continuing after step {state.step}{changed}")
    summary = _Session(recipe, images, held_out, out, state, accelerator).go()
    accelerator.print(summary)
    accelerator.end_training()
    return summary


class _Session:
    """One session of a run: from the state it is given to the last step of the recipe."""

    def __init__(
        self,
        recipe: Recipe,
        images: Folder,
        held_out: Folder | None,
        out: Path,
        state: State,
        accelerator: Accelerator,
    ) -> None:
        self._recipe = recipe
        self._images = images
        self._patches = Patches(images.images, recipe.data, recipe.seed)
        self._held_out = held_out
        self._out = out
        self._state = state
        self._accelerator = accelerator
        self._summary = TrainingSummary(best=state.best)
        self._seconds_before = state.seconds
        self._log: Log | None = None
        # Sums of loss and gradient norm since they were last recorded, and when that was.
        self._sums = torch.zeros(2, dtype=_precise(accelerator), device=accelerator.device)
        self._recorded = state.step
        self._training_recorded = 0.0

    def go(self) -> TrainingSummary:
        """Take the remaining steps."""
        state, summary = self._state, self._summary
        if self._accelerator.is_main_process:
            self._log = Log(self._out, state.step, self._recipe.optimization.steps)
        try:
            with closing(self._batches()) as batches, self._stop_requests() as stop_requested:
                while state.step < self._recipe.optimization.steps:
                    if stop_requested():
                        self._stop()
                    with summary.timed(DATA):
                        batch = next(batches)
                    with summary.timed(NETWORK):
                        self._sums += torch.stack(state.update(state.on_device(batch)))
                    with summary.timed(FILES):
                        self._after_step()
        finally:
            if self._log is not None:
                self._log.close()
        return summary

    def _stop_requests(self) -> AbstractContextManager[Callable[[], bool]]:
        # Many processes could not stop after one step without asking each other at every step.
        alone = self._accelerator.num_processes == 1
        return stop_requests() if alone else nullcontext(lambda: False)

    def _batches(self) -> Generator[SampleBatch]:
        """Yield this process's share of every remaining batch."""
        state, settings = self._state, self._recipe.optimization
        share = settings.batch // self._accelerator.num_processes
        first = state.samples + share * self._accelerator.process_index
        starts = range(0, settings.batch * (settings.steps - state.step), settings.batch)
        return prefetch(lambda start: self._patches.batch(first + start, share), starts)

    def _after_step(self) -> None:
        """Do what is due at this step: record, validate, keep."""
        recipe, step = self._recipe, self._state.step
        self._summary.steps += 1
        self._summary.samples += recipe.optimization.batch
        if self._log is not None:
            self._log.step()
        last = step == recipe.optimization.steps
        validate = last or step % recipe.validation.every == 0
        keep = last or step % recipe.checkpoint_every == 0
        if validate or keep or step % recipe.log_every == 0:
            self._record()
        if validate:
            self._validate()
        if keep:
            self._save_checkpoint()

    def _stop(self) -> None:
        """Keep what was reached, and end the run."""
        if self._recorded < self._state.step:
            self._record()
        self._save_checkpoint()
        raise Stopped(f"stopped after step {self._state.step}; continue with --resume.")

    def _save_checkpoint(self) -> None:
        if self._accelerator.is_main_process:
            self._state.seconds = self._seconds_before + self._summary.elapsed
            folder = self._out / "checkpoints"
            checkpoint.write(folder, self._state.step, self._state.to_checkpoint())

    def _record(self) -> None:
        """Log the mean loss since the last record, and stop a run that has diverged."""
        state = self._state
        means = self._accelerator.reduce(self._sums / (state.step - self._recorded), "mean")
        loss, norm = means.tolist()
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise DivergedError(
                f"the training diverged before step {state.step} (loss {loss:g}, gradient norm "
                f"{norm:g}); the last good checkpoint is kept: resume it with a lower "
                "optimization.learning_rate or optimization.clip."
            )
        settings = self._recipe.optimization
        samples = settings.batch * (state.step - self._recorded)
        speed = samples / (self._summary.training - self._training_recorded)
        self._sums.zero_()
        self._recorded = state.step
        self._training_recorded = self._summary.training
        if self._log is not None:
            self._log.training(
                {
                    "step": state.step,
                    "loss": loss,
                    "gradient_norm": norm,
                    "learning_rate": learning_rate(state.step - 1, settings),
                    "samples_per_second": speed,
                }
            )

    def _validate(self) -> None:
        """Measure the PSNR on the held-out set, and keep the weights: last, and best so far."""
        state = self._state
        scores = self._scores() if self._held_out is not None else {}
        mean = fmean(scores.values()) if scores else None
        if mean is not None and math.isnan(mean):
            raise DivergedError(
                f"the network returns NaN at step {state.step}; the last good checkpoint is kept: "
                "resume it with a lower optimization.learning_rate."
            )
        is_best = mean is not None and (state.best is None or mean > state.best)
        if is_best:
            state.best = self._summary.best = mean
        if not self._accelerator.is_main_process:
            return
        self._save_weights("last.safetensors", scores)
        if is_best:
            self._save_weights("best.safetensors", scores)
        if self._log is not None and mean is not None:
            levels = {f"psnr_{name}": score for name, score in scores.items()}
            self._log.validation({"step": state.step, "psnr": mean, **levels})

    @torch.no_grad()
    def _scores(self) -> dict[str, float]:
        """Return the mean PSNR under each condition, the images shared among the processes."""
        assert self._held_out is not None
        recipe, network, images = self._recipe, self._state.judged, self._held_out.images
        listed = conditions(recipe)
        measured = torch.zeros(len(listed), len(images), dtype=_precise(self._accelerator))
        network.eval()
        with watching_relus(network) as passing:
            for row, condition in zip(measured, listed, strict=True):
                batches = noisy_images(
                    images, condition, recipe.validation, recipe.data.noise, recipe.seed
                )
                for index, batch in enumerate(batches):
                    if index % self._accelerator.num_processes == self._accelerator.process_index:
                        batch = self._state.on_device(batch)
                        output = network(*batch.arguments(recipe.network))
                        row[index] = psnr(output.cpu().numpy(), batch.target.cpu().numpy())
        network.train()
        self._warn_of_dead_relus(passing)
        total = self._accelerator.reduce(measured.to(self._accelerator.device), "sum")
        means = total.mean(1).tolist()
        return {each.name: mean for each, mean in zip(listed, means, strict=True)}

    def _warn_of_dead_relus(self, passing: dict[str, Tensor]) -> None:
        """Warn if a whole layer is dead: the scores alone may not show it."""
        dead = [name for name, channels in passing.items() if not channels.any()]
        if dead and self._accelerator.is_main_process:
            warnings.warn(
                f"{len(dead)} of {len(passing)} ReLUs are zero for every image, the first "
                f"{dead[0]}: start again with a lower optimization.learning_rate, or with sort "
                "pooling instead.",
                stacklevel=2,
            )

    def _save_weights(self, name: str, scores: dict[str, float]) -> None:
        state = self._state
        card = {
            "description": self._recipe.description,
            "recipe": self._recipe.model_dump(mode="json"),
            "steps": state.step,
            "samples": state.samples,
            "hours": round((self._seconds_before + self._summary.elapsed) / 3600, 3),
            "images": str(self._images),
            **({"started_from": state.started_from} if state.started_from else {}),
            **({"earlier": state.earlier} if state.earlier else {}),
            "validation_psnr": {name: round(score, 3) for name, score in scores.items()},
        }
        normeq.save(state.judged, self._out / name, card)


def _precise(accelerator: Accelerator) -> torch.dtype:
    """Return the most precise floating point type of the device."""
    return torch.float32 if accelerator.device.type == "mps" else torch.float64
