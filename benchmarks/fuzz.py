"""Damaged files of every kind, and what becomes of them.

    python benchmarks/fuzz.py --minutes 10

changes whole files (images of every format, weights, recipes, journals) at random and gives them
to normeq, in child processes with limits on time (30 seconds of computing, 300 in all) and memory.
Mutant N of a seed is always the same. What became of them is counted in docs/data/fuzz.csv and
docs/reliability.md, and failures are kept in the folder of --keep:

- done: a result, or a file that was read
- refused: one sentence
- masked: a sentence that hides an error of the program
- traceback, hang, crash: what the names say
- memory: more than 2 GB
- partial: a result that is not whole, or files left behind
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from pages import DATA, DOCS, fill, table

from normeq._support.tables import write_csv
from normeq.errors import UNFORESEEN

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from helpers.file_samples import SAMPLES, write_sample

CSV, PAGE = DATA / "fuzz.csv", DOCS / "reliability.md"
OUTCOMES = ("done", "refused", "masked", "traceback", "hang", "crash", "memory", "partial")
FAILURES = OUTCOMES[2:]
SECONDS = 30
MOST_MEMORY = 2 * 2**30


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes that differ from `data`: cut, flipped, overwritten, moved or repeated."""
    changed = bytearray(data)
    if not changed:
        return b"\0"
    for _ in range(int(rng.integers(1, 4))):
        # Headers come first or last in most formats: they are hit as often as the pixels.
        near = int(rng.integers(0, min(1000, len(changed))))
        anywhere = int(rng.integers(0, len(changed)))
        place = (near, len(changed) - 1 - near, anywhere)[rng.integers(0, 3)]
        match int(rng.integers(0, 7)):
            case 0:
                del changed[place + 1 :]
            case 1:
                changed[place] ^= 1 << int(rng.integers(0, 8))
            case 2:
                changed[place] = int(rng.integers(0, 256))
            case 3:  # numbers of 2, 4 or 8 bytes at the ends of their range
                size = int(rng.choice([2, 4, 8]))
                value = [b"\0", b"\xff", b"\x7f", b"\x80"][rng.integers(0, 4)] * size
                changed[place : place + size] = value[: len(changed[place : place + size])]
            case 4:  # digits of texts
                digits = [i for i, byte in enumerate(changed[:4000]) if 48 <= byte < 58]
                if digits:
                    changed[int(rng.choice(digits))] = int(rng.choice(list(b"0189-e.")))
            case 5:
                length = int(rng.integers(1, 64))
                del changed[place : place + length]
            case 6:
                length = int(rng.integers(1, 64))
                changed[place:place] = changed[place : place + length]
        if not changed:
            return b"\0"
    return bytes(changed)


def mutant(originals: dict[str, Path], folder: Path, seed: int, number: int) -> tuple[str, Path]:
    """Write mutant `number` of a seed into `folder`; return its kind and path."""
    rng = np.random.default_rng((seed, number))
    kind = sorted(originals)[number % len(originals)]
    original = originals[kind]
    path = folder / original.name
    if original.is_dir():
        shutil.copytree(original, path)
        files = sorted(file for file in path.rglob("*") if file.is_file())
        file = files[int(rng.integers(0, len(files)))]
        file.write_bytes(mutated(file.read_bytes(), rng))
    else:
        path.write_bytes(mutated(original.read_bytes(), rng))
    return kind, path


def outcome_of(path: Path) -> tuple[str, str]:
    """Give a mutant to normeq; return what became of it, and what was said."""
    from normeq.errors import NormeqError

    try:
        return CONSUMERS.get(path.suffix, denoised)(path)
    except NormeqError as error:
        unforeseen = isinstance(error.__cause__, UNFORESEEN)
        quoted = str(error.__cause__) or type(error.__cause__).__name__
        hidden = unforeseen and f"({quoted}" in str(error)
        return "masked" if hidden else "refused", f"{error} <- {error.__cause__!r}"
    except Exception as error:
        return "traceback", f"{type(error).__name__}: {error}"


def denoised(path: Path) -> tuple[str, str]:
    """Denoise an image."""
    from normeq import denoise_files
    from normeq.images import open_image, read, result_extension

    folder = path.parent / "out"
    target = folder / f"out{result_extension(path)}"
    [outcome] = denoise_files(path, target, model=lambda plane: plane / 2, max_pixels=10**7)
    left = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    if outcome.status == "done":
        read(target)
        return ("done", "") if left == [target.name] else ("partial", str(left))
    if target.exists() or [name for name in left if name != f".{target.name}.partial"]:
        return "partial", str(left)
    # The sentence again, with the error that it came from.
    with open_image(path, max_pixels=10**7) as source:
        for part in source.parts:
            for frame in range(part.frames):
                part.read(frame, 0, part.height)
    text = str(outcome.error)
    return "masked" if "Error: " in text else "refused", text


def loaded(path: Path) -> tuple[str, str]:
    """Load weights."""
    import normeq

    normeq.load(path)
    return "done", ""


def recipe(path: Path) -> tuple[str, str]:
    """Read a recipe."""
    from normeq.training import load_recipe

    load_recipe(path)
    return "done", ""


def journal(path: Path) -> tuple[str, str]:
    """Go on with an unfinished output."""
    from helpers.file_samples import JOURNAL_KEY

    from normeq.denoising.journal import Journal

    folder = path.parent / "partial"
    folder.mkdir()
    path.rename(folder / ".normeq-finished")
    Journal(folder, JOURNAL_KEY)
    return "done", ""


CONSUMERS: dict[str, Callable[[Path], tuple[str, str]]] = {
    ".safetensors": loaded,
    ".toml": recipe,
    ".journal": journal,
}


def copied(original: Path) -> Path:
    """Copy an original into a folder of its own."""
    copy = Path(tempfile.mkdtemp(dir=original.parents[1]), original.name)
    if original.is_dir():
        return Path(shutil.copytree(original, copy))
    return Path(shutil.copyfile(original, copy))


def answers(pipe: Connection, process: int) -> bool:
    """Wait for a child; give up once it has computed too long, or waited for ten times that."""
    about = psutil.Process(process)
    start, end = sum(about.cpu_times()[:2]), time.monotonic() + 10 * SECONDS
    while time.monotonic() < end and sum(about.cpu_times()[:2]) < start + SECONDS:
        if pipe.poll(1):
            return True
    return pipe.poll()


def work(originals: dict[str, Path], seed: int, first: int, pipe: Connection) -> None:
    """Report on mutants one by one, until told to stop."""
    import warnings

    warnings.simplefilter("ignore")
    sys.stderr = open("/dev/null", "w")  # noqa: SIM115  # what libraries print
    pipe.send([outcome_of(copied(path)) for path in originals.values()])  # imports are slow
    number = first
    while True:
        with tempfile.TemporaryDirectory() as name:
            kind, path = mutant(originals, Path(name), seed, number)
            outcome, detail = outcome_of(path)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if peak > MOST_MEMORY:
            outcome = "memory"
        pipe.send((number, kind, outcome, detail))
        if outcome == "memory":
            return  # the peak of a process never falls
        number += 1


def fuzz(
    originals: dict[str, Path], seed: int, minutes: float, report: Callable[..., None]
) -> Counter[tuple[str, str]]:
    """Count what becomes of mutants, by kind and outcome."""
    # Not fork: threads that a library has started while the samples were written would be missing.
    context = multiprocessing.get_context("spawn")
    counts: Counter[tuple[str, str]] = Counter()
    end = time.monotonic() + 60 * minutes
    number = 0
    while time.monotonic() < end:
        ours, theirs = context.Pipe()
        child = context.Process(target=work, args=(originals, seed, number, theirs), daemon=True)
        child.start()
        theirs.close()
        undamaged = dict(zip(originals, ours.recv(), strict=True))
        if any(outcome != "done" for outcome, _ in undamaged.values()):
            raise SystemExit(f"not all originals are done: {undamaged}")
        while time.monotonic() < end:
            kind, detail = sorted(originals)[number % len(originals)], ""
            try:
                if answers(ours, child.pid):
                    _, kind, outcome, detail = ours.recv()
                else:
                    outcome = "hang"
            except EOFError:
                child.join()
                outcome = "crash"
            counts[kind, outcome] += 1
            if outcome in FAILURES:
                report(number, kind, outcome, detail)
            number += 1
            if outcome in ("hang", "crash", "memory"):
                break
        child.kill()
        child.join()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="some kinds of files, such as in.tif,in.czi")
    parser.add_argument("--keep", type=Path, help="where to put the mutants that failed")
    parser.add_argument("--csv", type=Path, default=CSV)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        originals: dict[str, Path] = {}
        for kind in options.only.split(",") if options.only else SAMPLES:
            originals[kind] = Path(name, "originals", kind)
            originals[kind].parent.mkdir(exist_ok=True)
            write_sample(originals[kind])

        def report(number: int, kind: str, outcome: str, detail: str) -> None:
            print(f"{outcome} {kind} {number}: {detail}", flush=True)
            if options.keep:
                folder = options.keep / f"{outcome}-{number}"
                folder.mkdir(parents=True, exist_ok=True)
                mutant(originals, folder, options.seed, number)

        counts = fuzz(originals, options.seed, options.minutes, report)
    rows: list[dict[str, Any]] = [
        {"file": kind} | {outcome: counts[kind, outcome] for outcome in OUTCOMES}
        for kind in sorted(originals)
    ]
    rows.append({"file": "all"} | {o: sum(row[o] for row in rows) for o in OUTCOMES})
    write_csv(options.csv, rows)
    if options.csv == CSV:
        fill(PAGE, "fuzz", table(CSV))
    print(rows[-1])


if __name__ == "__main__":
    main()
