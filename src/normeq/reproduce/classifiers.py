"""The paper's classifiers as networks to be trained, and the loop that trains them."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from normeq.models import Network, Variant, Wrapped, create, save
from normeq.reproduce.denoisers import training_package
from normeq.reproduce.digits import LabelledImages, read_digits
from normeq.reproduce.scale import Scale
from normeq.reproduce.trainable import WEIGHTS, Trainable
from normeq.reproduce.workspace import Workspace

if TYPE_CHECKING:
    from normeq.training.checkpoint import Checkpoint

#: Share of the steps after which the learning rate falls to a quarter, four times.
_MILESTONES = (0.5, 0.75, 0.89, 0.94)
#: How often the error is measured on the way.
_LOOKS = 5
_BATCH_OF_TEST = 500


@dataclass(frozen=True)
class Settings:
    """What decides how a classifier is trained: sizes, steps, rate and dropout."""

    widths: tuple[int, ...] = (128, 256, 256, 512, 512, 512)
    hidden: int = 1024
    #: 100 epochs of 60,000 images.
    steps: int = 46_900
    batch: int = 128
    rate: float = 5e-4
    dropout: float = 0.1
    checkpoint_every: int = 500


_SCALES = {
    Scale.PAPER: Settings(),
    Scale.SMALL: Settings((16, 32, 32, 64, 64, 64), 128, 1000, 64, 1e-3, 0.1, 100),
    Scale.TINY: Settings((4, 4, 4, 4, 4, 4), 8, 4, 8, 1e-3, 0.1, 2),
}
#: For norm-equiv the paper starts at another rate, and halves the dropout.
_NORM_RATES = {Scale.PAPER: 3e-5, Scale.SMALL: 5e-4, Scale.TINY: 5e-4}


@dataclass(frozen=True)
class Classifier(Trainable):
    """VGG8b in one variant, trained on one set."""

    variant: Variant
    dataset: str
    seed: int = 0

    @property
    def name(self) -> str:
        seed = f"-seed{self.seed}" if self.seed else ""
        return f"paper-vgg8b-{self.variant}-{self.dataset}{seed}"

    @property
    def is_essential(self) -> bool:
        return self.seed == 0

    def settings(self, scale: Scale) -> Settings:
        """Return how it is trained: as the paper's note says, or reduced."""
        settings = _SCALES[scale]
        if self.variant != "norm-equiv":
            return settings
        return replace(settings, rate=_NORM_RATES[scale], dropout=settings.dropout / 2)

    def create(self, scale: Scale, image_size: int) -> Network | Wrapped:
        """Build the network with fresh weights."""
        settings = self.settings(scale)
        torch.manual_seed(self.seed)
        return create(
            "vgg8b",
            self.variant,
            widths=settings.widths,
            hidden=settings.hidden,
            dropout=settings.dropout,
            image_size=image_size,
        )

    def recipe_text(self, scale: Scale) -> str:
        settings = asdict(self.settings(scale))
        del settings["checkpoint_every"]
        return json.dumps([self.name, settings], sort_keys=True)

    def reductions(self, scale: Scale) -> list[str]:
        if scale is Scale.PAPER:
            return []
        settings = _SCALES[scale]
        widths = ", ".join(map(str, settings.widths))
        return [
            f"VGG8b: widths {widths}, hidden {settings.hidden}",
            f"classifiers: {settings.steps:,} steps of {settings.batch} images, rate "
            f"{settings.rate:g}, for norm-equiv {_NORM_RATES[scale]:g}",
        ]

    def steps(self, scale: Scale) -> int:
        return self.settings(scale).steps

    def steps_done(self, run: Path) -> int:
        stored = training_package().checkpoint.stored(run / "checkpoints")
        return int(stored[0].stem.partition("-")[2]) if stored else 0

    def train(self, workspace: Workspace, run: Path) -> None:
        folder = workspace.folder(self.dataset, f"training {self.name}")
        train, test = (read_digits(folder, part) for part in ("train", "test"))
        _Training(self, workspace.scale, run, train, test).go()


class _Training:
    """A run of a classifier: its state is written every few steps, and continued from there."""

    def __init__(
        self,
        classifier: Classifier,
        scale: Scale,
        run: Path,
        train: LabelledImages,
        test: LabelledImages,
    ) -> None:
        self.checkpoints = training_package().checkpoint
        self.classifier = classifier
        self.settings = classifier.settings(scale)
        self.run = run
        self.train, self.test = train, test
        self.net = classifier.create(scale, train.images.shape[1])
        self.optimizer = torch.optim.Adam(self.net.parameters(), self.settings.rate)
        self.step = 0
        self.seconds = 0.0
        #: Steps and error on the test images, on the way.
        self.errors: list[tuple[int, float]] = []
        if self.checkpoints.stored(run / "checkpoints"):
            self._restore(self.checkpoints.newest(run / "checkpoints"))

    def go(self) -> None:
        """Take the remaining steps, and write the weights."""
        from tqdm import tqdm

        from normeq.training.interruption import Stopped, stop_requests

        steps, start = self.settings.steps, time.monotonic() - self.seconds
        bar = tqdm(total=steps, initial=self.step, unit="step", mininterval=5)
        with bar, stop_requests() as stop_requested:
            while self.step < steps:
                if stop_requested():
                    self.seconds = time.monotonic() - start
                    self._save()
                    raise Stopped(
                        f"{self.classifier.name}: stopped after step {self.step}; give the same "
                        "command again to go on."
                    )
                self._update()
                bar.update()
                if self.step % max(1, steps // _LOOKS) == 0 or self.step == steps:
                    self.errors.append((self.step, error_rate(self.net, self.test)))
                if self.step % self.settings.checkpoint_every == 0 or self.step == steps:
                    self.seconds = time.monotonic() - start
                    if self.step == steps:
                        self._write_weights()
                    self._save()

    def _update(self) -> None:
        self.net.train()
        share = self.step / self.settings.steps
        rate = self.settings.rate * 0.25 ** sum(share >= each for each in _MILESTONES)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        chosen = self._batch()
        scores = self.net(as_tensor(self.train.images[chosen]))
        loss = F.cross_entropy(scores, torch.from_numpy(self.train.labels[chosen]))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1

    def _batch(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the images of a step: each epoch is a permutation of all of them."""
        batch = min(self.settings.batch, len(self.train))
        epoch, place = divmod(self.step, len(self.train) // batch)
        order = np.random.default_rng((self.classifier.seed, epoch)).permutation(len(self.train))
        return order[place * batch : (place + 1) * batch]

    def _write_weights(self) -> None:
        card = {
            "description": f"{self.classifier.name}, for the paper's table of classifiers.",
            "settings": asdict(self.settings),
            "images": len(self.train),
            "errors": self.errors,
            "hours": round(self.seconds / 3600, 3),
        }
        save(self.net, self.run / WEIGHTS, card)

    def _save(self) -> None:
        from normeq.training.checkpoint import Checkpoint

        tensors = {f"network.{name}": t for name, t in self.net.state_dict().items()}
        for index, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": t for name, t in moments.items()}
        tensors["random.torch"] = torch.get_rng_state()
        values = {"step": self.step, "seconds": self.seconds, "errors": self.errors}
        copies = {name: tensor.detach().clone() for name, tensor in tensors.items()}
        self.checkpoints.write(self.run / "checkpoints", self.step, Checkpoint(copies, values))

    def _restore(self, saved: Checkpoint) -> None:
        self.net.load_state_dict(saved.part("network"))
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in saved.part("optimizer").items():
            index, key = name.split(".")
            moments.setdefault(int(index), {})[key] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        torch.set_rng_state(saved.tensors["random.torch"])
        self.step, self.seconds = saved.values["step"], saved.values["seconds"]
        self.errors = [(int(step), float(error)) for step, error in saved.values["errors"]]


def as_tensor(images: np.ndarray[Any, Any]) -> Tensor:
    """Return images of 8 bits as a batch, with white at 1."""
    return torch.from_numpy(images[:, None].astype(np.float32) / np.float32(255))


@torch.inference_mode()
def labels_of(net: Network | Wrapped, batch: Tensor) -> Tensor:
    """Return the label that a classifier gives each image."""
    net.eval()
    return torch.cat([net(part).argmax(1) for part in batch.split(_BATCH_OF_TEST)])


def error_rate(net: Network | Wrapped, test: LabelledImages) -> float:
    """Return the share of images with a wrong label."""
    found = labels_of(net, as_tensor(test.images)).numpy()
    return float(np.mean(found != test.labels))
