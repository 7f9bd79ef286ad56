"""The paper's table of classifiers, and labels that do not depend on units, which it mentions."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np

from normeq.models import Variant
from normeq.reproduce.classifiers import Classifier, as_tensor, error_rate, labels_of
from normeq.reproduce.denoisers import rise
from normeq.reproduce.digits import LabelledImages, read_digits
from normeq.reproduce.scale import Scale
from normeq.reproduce.trainable import usable
from normeq.reproduce.verdicts import Claim, Verdict, is_above, spread_of, together
from normeq.reproduce.workspace import Unavailable, Workspace

SETS = {"mnist": "MNIST", "kmnist": "Kuzushiji-MNIST", "fashion_mnist": "Fashion-MNIST"}
VARIANTS: tuple[Variant, ...] = ("ordinary", "scale-equiv", "norm-equiv")
REPEATED: Variant = "norm-equiv"
SEEDS = (0, 1, 2)
#: The paper's test errors in percent.
PAPER = {
    ("ordinary", "mnist"): 0.26,
    ("ordinary", "kmnist"): 1.53,
    ("ordinary", "fashion_mnist"): 4.53,
    ("scale-equiv", "mnist"): 0.37,
    ("scale-equiv", "kmnist"): 1.52,
    ("scale-equiv", "fashion_mnist"): 5.01,
    ("norm-equiv", "mnist"): 0.44,
    ("norm-equiv", "kmnist"): 2.78,
    ("norm-equiv", "fashion_mnist"): 6.57,
}
#: Changes of units: gain and offset, white at 1.
CHANGES = ((0.1, 0.0), (10.0, 0.0), (1.0, 0.5), (1.0, -0.5), (0.1, 3.0), (10.0, -3.0))
#: Images of which the labels are compared.
_COMPARED = {Scale.TINY: 20, Scale.SMALL: 2000, Scale.PAPER: 10_000}
_COMPLETE = 60_000


def networks(scale: Scale) -> list[Classifier]:
    """List the classifiers: three variants on three sets, one of them with three seeds."""
    return [
        Classifier(variant, name, seed)
        for name in SETS
        for variant in VARIANTS
        for seed in (SEEDS if variant == REPEATED else (0,))
    ]


def reproduce(workspace: Workspace) -> None:
    """Measure test errors, and how many labels change when the image becomes ``λ·x + μ``."""
    errors: dict[tuple[str, str], list[float]] = {}
    falls: dict[str, float] = {}
    changed: list[dict[str, Any]] = []
    incomplete: dict[str, int] = {}
    for name in SETS:
        try:
            folder = workspace.folder(name, "classification-table")
            test = read_digits(folder, "test")
            images = len(read_digits(folder, "train"))
        except Unavailable as missing:
            workspace.say(f"skipped: {missing}")
            continue
        if images < _COMPLETE:
            incomplete[name] = images
            workspace.say(f"{SETS[name]} has {images:,} training images here, not {_COMPLETE:,}")
        every = [network for network in networks(workspace.scale) if network.dataset == name]
        for each in usable(every, workspace):
            net = each.network(workspace)
            errors.setdefault((each.variant, name), []).append(100 * error_rate(net, test))
            falls[name] = max(falls.get(name, 0.0), _fall(net.card))
            if each.seed == 0:
                count = _COMPARED[workspace.scale]
                changed += _changed(
                    each, net, LabelledImages(test.images[:count], test.labels[:count])
                )
    if not errors:
        raise Unavailable(f"classification-table needs one of the sets {', '.join(SETS)}.")
    workspace.table("classification-table", _rows(errors, incomplete))
    workspace.table("classification-table-units", changed)
    workspace.judge("classification-table", _claims(errors, falls, changed, incomplete))


def _changed(each: Classifier, net: Any, test: LabelledImages) -> list[dict[str, Any]]:
    """Count the labels that another gain and offset change."""
    batch = as_tensor(test.images)
    before = labels_of(net, batch)
    return [
        {
            "set": SETS[each.dataset],
            "variant": each.variant,
            "gain": gain,
            "offset": offset,
            "labels changed %": f"{_share(before, labels_of(net, gain * batch + offset)):.2f}",
        }
        for gain, offset in CHANGES
    ]


def _share(before: Any, after: Any) -> float:
    return 100 * float(np.mean((before != after).numpy()))


def _rows(
    errors: dict[tuple[str, str], list[float]], incomplete: dict[str, int]
) -> list[dict[str, Any]]:
    return [
        {
            "variant": variant,
            "set": SETS[name],
            "training images": incomplete.get(name, _COMPLETE),
            "test error %": f"{fmean(found):.2f}",
            "paper %": PAPER[variant, name],
            "spread": f"{spread_of(found):.2f}" if len(found) > 1 else "",
        }
        for (variant, name), found in errors.items()
    ]


def _fall(card: dict[str, Any]) -> float:
    """Return by how many points the test error fell in the last fifth of a training."""
    return rise([(step, -100 * error) for step, error in card.get("errors", [])])


def _claims(
    errors: dict[tuple[str, str], list[float]],
    falls: dict[str, float],
    changed: list[dict[str, Any]],
    incomplete: dict[str, int],
) -> list[Claim]:
    names = sorted({name for _, name in errors})
    gaps = {name: fmean(errors[REPEATED, name]) - fmean(errors["ordinary", name]) for name in names}
    worse = [
        is_above(gaps[name], 0.0, spread_of(errors[REPEATED, name]), falls[name]) for name in names
    ]
    paper = [PAPER[REPEATED, name] - PAPER["ordinary", name] for name in names]

    def most(variant: str) -> float:
        return max(float(row["labels changed %"]) for row in changed if row["variant"] == variant)

    short = [f"{SETS[name]}: {count:,} training images" for name, count in incomplete.items()]
    return [
        Claim(
            "Norm-equiv classifiers have a larger test error than ordinary ones",
            ", ".join(
                f"{SETS[name]} {gap:+.2f} points" for name, gap in zip(names, paper, strict=True)
            ),
            ", ".join(f"{SETS[name]} {gaps[name]:+.2f} points" for name in names),
            together(worse),
            "; ".join(
                [f"errors fell by up to {max(falls.values()):.2f} points in the last fifth", *short]
            ),
        ),
        Claim(
            "The label of a norm-equiv classifier does not change with gain and offset",
            "mentioned",
            f"labels changed at most: norm-equiv {most(REPEATED):.2f} %, scale-equiv "
            f"{most('scale-equiv'):.2f} %, ordinary {most('ordinary'):.2f} %",
            Verdict.HOLDS if most(REPEATED) < 0.1 < most("ordinary") else Verdict.FAILS,
            "gains 0.1 to 10, offsets -3 to 3 with white at 1; float32",
        ),
    ]
