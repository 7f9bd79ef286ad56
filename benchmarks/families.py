"""What certificates and conversions make of networks in the style of each family.

    python benchmarks/families.py [--data FOLDER --test FOLDER]

For each network of benchmarks/family_networks.py: the certificate's verdicts beside the measured
errors, and which forms it converts to, with the parameters kept. With images, three of them are
trained for Gaussian noise of sigma 25, converted, and trained on: PSNR before and after. Writes
docs/data/families.csv, docs/data/family-twins.csv and the tables of docs/convert.md.
"""

from __future__ import annotations

import argparse
import copy
from pathlib import Path

import torch
from conversion import RATE, distance, psnr, train
from family_networks import FAMILIES
from pages import DATA, DOCS, fill, markdown
from torch import nn

import normeq
from normeq._support.tables import read_csv, write_csv
from normeq.conversion.converter import TARGETS
from normeq.images.folder import read_folder
from normeq.training.data import Patches
from normeq.training.recipe import Data, Validation
from normeq.training.validation_set import Condition, noisy_images

TRAINED = ("U-Net, group norm", "NAFNet", "ConvNeXt")
FORMS = ("norm-equiv-residual", "norm-equiv-wrapped", "norm-equiv-local")
PATCHES, TEST = Data(patch=32, sigma=25.0), Validation(crop=128)
LEVELS = (10.0, 25.0, 50.0)
STEPS = 500
PAGE = DOCS / "convert.md"
VERDICTS, TWINS = DATA / "families.csv", DATA / "family-twins.csv"


def random_network(name: str) -> tuple[nn.Module, torch.Tensor | None]:
    """Build a network, its biases and norms random too, and the example to certify it with."""
    build, shape = FAMILIES[name]
    torch.manual_seed(0)
    net: nn.Module = build()
    with torch.no_grad():
        for path, parameter in net.named_parameters():
            if not name.startswith("DRUNet") and (parameter.ndim <= 1 or "bias" in path):
                parameter.add_(0.2 * torch.rand_like(parameter))
    generator = torch.Generator().manual_seed(0)
    return net.eval(), None if shape is None else torch.rand(shape, generator=generator)


def verdict(name: str) -> dict[str, str]:
    """Certify a network and convert it to every form."""
    net, example = random_network(name)
    certificate = normeq.certify(net, example)
    row = {"network": name, "scale": str(certificate.scale), "shift": str(certificate.shift)}
    for which in ("scale", "shift"):
        row[f"{which} error"] = f"{certificate.measured[which]:.0e}"
    for target in TARGETS:
        try:
            _, report = normeq.convert(net, target, example)
            before, after = report.parameters
            row[target] = f"{after / before:.0%}"
        except normeq.NormeqError:
            row[target] = "refused"
    print(*row.values(), flush=True)
    return row


def with_relu(net: nn.Module) -> nn.Module:
    """Return a copy of a network with ReLU, which scales with its input, for GELU and SiLU."""
    copied = copy.deepcopy(net)
    for module in copied.modules():
        for path, child in module.named_children():
            if isinstance(child, nn.GELU | nn.SiLU):
                setattr(module, path, nn.ReLU())
    return copied


def twins(name: str, data: Patches, tests: dict[float, list]) -> list[dict[str, str]]:
    """Train a network, convert it, and train its twins on."""
    build, _ = FAMILIES[name]
    torch.manual_seed(0)
    net = build()
    train(net, data, 0, STEPS, RATE)
    example = tests[25.0][0].noisy[..., :64, :64]
    rows = []

    def measure(form: str, steps: int, twin: nn.Module) -> None:
        scores = {f"sigma {level:g}": f"{psnr(twin, t):.2f}" for level, t in tests.items()}
        elsewhere = f"{psnr(twin, tests[25.0], 4.0, -100.0):.2f}"
        moved = f"{distance(net, twin, tests[25.0]):.2f}"
        rows.append({"network": name, "form": form, "further steps": steps, "moved": moved} | scores
                    | {"at 4·y - 100": elsewhere})  # fmt: skip
        print(*rows[-1].values(), flush=True)

    measure("as it is", 0, net)
    kinked = with_relu(net)
    origins = dict.fromkeys(FORMS, net)
    if any(isinstance(module, nn.ReLU) for module in kinked.modules()):
        origins["norm-equiv-residual, ReLU"] = kinked
    for form, origin in origins.items():
        twin, _ = normeq.convert(origin, form.split(",")[0], example)
        measure(form, 0, twin.eval())
        train(twin, data, STEPS, STEPS, RATE / 4)
        measure(form, STEPS, twin)
    return rows


def write_page() -> None:
    for path, marker in ((VERDICTS, "families"), (TWINS, "family twins")):
        if path.exists():
            rows = read_csv(path)
            fill(PAGE, marker, markdown(list(rows[0]), [list(row.values()) for row in rows]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="training images")
    parser.add_argument("--test", type=Path, help="test images")
    parser.add_argument("--only-twins", action="store_true", help="leave the verdicts as they are")
    options = parser.parse_args()
    if not options.only_twins:
        write_csv(VERDICTS, [verdict(name) for name in FAMILIES])
    if options.data and options.test:
        data = Patches(read_folder(options.data, 1, PATCHES.patch).images, PATCHES, seed=0)
        images = read_folder(options.test, 1).images
        tests = {
            level: list(noisy_images(images, Condition(level), TEST, "gaussian", seed=0))
            for level in LEVELS
        }
        rows: list[dict[str, str]] = []
        for name in TRAINED:
            rows += twins(name, data, tests)
            write_csv(TWINS, rows)
    write_page()


if __name__ == "__main__":
    main()
