"""Seconds of processor time a megapixel, for every way to run the default model.

    python benchmarks/backends.py [--side 512] [--repeats 7] [--browser]

runs PyTorch (folded, and compiled), onnxruntime and OpenVINO, those that are installed, in one
process on one thread, in turns, so that other load on the machine meets all of them alike. Times
are processor time, not time on the clock: medians, and half the range between quartiles. --browser
adds the demo in headless Chromium, whose processes are measured from outside, also with the fast
model. The table goes to docs/data/backends.csv and docs/export.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from pages import DATA, DOCS, fill, table

import normeq
from normeq._support.photograph import sample_photograph
from normeq._support.tables import write_csv
from normeq.denoising.onnx_network import OnnxNetwork

Run = Callable[[], object]
# What the browser is timed with: the model of the demo, and one at half the cost.
BROWSED = ("default", "default-fast")


def backends(side: int, folder: Path) -> Iterator[tuple[str, Run]]:
    """Yield a name and a function that denoises a square image once, each warmed up."""
    noise = np.random.default_rng(0).standard_normal((side, side))
    image = (np.resize(sample_photograph(), (side, side)) + 0.1 * noise).astype(np.float32)
    x = torch.from_numpy(image[None, None])
    net = normeq.fold(normeq.load("default"))
    path = folder / "default.onnx"
    normeq.export("default", path)
    yield f"PyTorch {torch.__version__.partition('+')[0]}, folded", lambda: net(x)
    compiled = torch.compile(net)
    yield "PyTorch, folded and compiled", lambda: compiled(x)
    import onnxruntime

    exported = OnnxNetwork(path)
    yield f"onnxruntime {onnxruntime.__version__}", lambda: exported(x)
    try:
        import openvino
    except ImportError:
        return
    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    vino = openvino.Core().compile_model(str(path), "CPU", settings)
    yield f"OpenVINO {openvino.__version__.partition('-')[0]}", lambda: vino([x.numpy()])


def measured(runs: dict[str, Run], repeats: int) -> dict[str, list[float]]:
    """Return processor times of each, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return times


def in_browser(model: str, repeats: int, folder: Path) -> tuple[str, list[float]]:
    """Return times of the demo on its sample of 512 x 512, after a first run that loads it."""
    import psutil

    root = Path(__file__).parents[1]
    sys.path += [str(root / "tests"), str(root / "docs")]
    from browser_demo import PACKAGE, write_demo
    from helpers.browser import running_browser, served
    from selenium.webdriver.common.by import By

    missing = write_demo(folder, model)
    if missing:
        raise SystemExit(missing)
    times = []
    with served(folder) as (address, _), running_browser() as browser:
        browser.get(address)
        for _ in range(repeats + 1):
            tree = psutil.Process(browser.service.process.pid).children(recursive=True)
            start = sum(sum(process.cpu_times()[:2]) for process in tree)
            browser.find_element(By.ID, "sample").click()
            time.sleep(0.5)
            while browser.find_element(By.ID, "progress").is_displayed():
                time.sleep(0.5)
            times.append(sum(sum(process.cpu_times()[:2]) for process in tree) - start)
    return f"{PACKAGE.replace('@', ' ')}, headless Chromium: `{model}`", times[1:]


def row(name: str, times: list[float], megapixels: float, reference: float) -> dict[str, str]:
    quartiles = statistics.quantiles(times, n=4)
    median = statistics.median(times) / megapixels
    half = (quartiles[2] - quartiles[0]) / 2 / megapixels
    return {
        "run by": name,
        "seconds of one core a megapixel": f"{median:.2f} ± {half:.2f}",
        "relative": f"{median / reference:.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--browser", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    megapixels = given.side**2 / 1e6
    with tempfile.TemporaryDirectory() as name, torch.inference_mode():
        folder = Path(name)
        runs = dict(backends(given.side, folder))
        measured(runs, 1)  # compiles, and warms up
        times = measured(runs, given.repeats)
        reference = statistics.median(next(iter(times.values()))) / megapixels
        rows = [row(name, found, megapixels, reference) for name, found in times.items()]
        for model in BROWSED if given.browser else ():
            name, found = in_browser(model, 3, folder / model)
            rows.append(row(name, found, 512**2 / 1e6, reference))
    write_csv(DATA / "backends.csv", rows)
    fill(DOCS / "export.md", "backends", table(DATA / "backends.csv"))
    print(table(DATA / "backends.csv"))


if __name__ == "__main__":
    main()
