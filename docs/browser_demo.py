"""The files of the demo that runs in the browser: the page, the network, and onnxruntime-web.

python docs/browser_demo.py FOLDER
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from torch import nn

import normeq
from normeq._support.photograph import sample_photograph
from normeq.denoising.onnx_network import OnnxNetwork

PAGE = Path(__file__).parent / "demo_page"
#: Where the npm package is kept between builds.
CACHE = Path(__file__).parents[1] / "build" / "npm"
PACKAGE = "onnxruntime-web@1.30.0"
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")


def write_demo(folder: Path, model: str | nn.Module = "default") -> str | None:
    """Write the whole demo; return a sentence about what is missing, if something is.

    Parameters
    ----------
    folder
        Made if need be. It can be served by any web server.
    model
        The network that the page runs: gray, and blind.
    """
    shutil.copytree(PAGE, folder, dirs_exist_ok=True)
    _write_sample(folder / "sample.png")
    try:
        normeq.export(model, folder / "model.onnx")
    except normeq.NormeqError as error:
        return f"the demo has no network: {error}"
    about = OnnxNetwork(folder / "model.onnx").header
    assert about is not None
    facts = {"stride": about.stride, "receptive_field": about.receptive_field}
    (folder / "model.json").write_text(json.dumps(facts), encoding="utf-8")
    return _copy_runtime(folder / "ort")


def _write_sample(path: Path) -> None:
    noise = np.random.default_rng(0).standard_normal((512, 512))
    noisy = sample_photograph() * 255 + 25 * noise
    Image.fromarray(np.rint(noisy.clip(0, 255)).astype(np.uint8)).save(path)


def _copy_runtime(folder: Path) -> str | None:
    """Copy onnxruntime-web out of its npm package."""
    kept = CACHE / PACKAGE
    if not all((kept / name).exists() for name in FILES):
        npm = shutil.which("npm")
        if npm is None:
            return "the demo has no onnxruntime-web: npm, which fetches it, is not installed"
        kept.mkdir(parents=True, exist_ok=True)
        # Two builds may fetch at once, so files are put in place whole.
        with tempfile.TemporaryDirectory(dir=kept) as temporary:
            fetched = Path(temporary)
            command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", str(fetched)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=fetched)
            archive = next(fetched.glob("*.tgz"), None)
            if done.returncode or archive is None:
                said = done.stderr.strip()
                return f"the demo has no onnxruntime-web: npm cannot fetch it ({said})"
            with tarfile.open(archive) as package:
                for name in FILES:
                    member = package.extractfile(f"package/dist/{name}")
                    assert member is not None
                    (fetched / name).write_bytes(member.read())
                    (fetched / name).replace(kept / name)
    folder.mkdir(exist_ok=True)
    for name in FILES:
        shutil.copy(kept / name, folder / name)
    return None


if __name__ == "__main__":
    print(write_demo(Path(sys.argv[1])) or f"serve it: python -m http.server -d {sys.argv[1]}")
