"""Memory is bounded, whatever the size of a file."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr

MEASURE = """
    import resource, sys, torch
    from pathlib import Path
    import normeq.denoising.network_denoiser, normeq.denoising.tiles, normeq.images.zarr_store
    import normeq.noise.sampling

    torch.set_num_threads(1)
    normeq.denoising.network_denoiser._BUDGET = 2**22
    normeq.denoising.tiles._BAND_BYTES = 2**18
    normeq.noise.sampling.BUDGET, normeq.noise.sampling.REGION = 2**16, 2**14
    normeq.images.zarr_store._BAND_PIXELS = 2**17
    net = normeq.create("ffdnet", width=4, depth=2)
    for name in sys.argv[1:]:
        path = Path(name)
        [outcome] = normeq.denoise_files(path, path.with_name("out-" + path.name), model=net)
        assert outcome.error is None, outcome.error
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(os.name != "posix", reason="getrusage")
def test_memory_does_not_grow_with_pixels_or_planes(tmp_path: Path) -> None:
    noise = np.random.default_rng(0)

    def tiff(name: str, shape: tuple[int, ...], **options: Any) -> str:
        image = noise.integers(0, 4000, shape, dtype=np.uint16)
        tifffile.imwrite(tmp_path / name, image, photometric="minisblack", **options)
        return str(tmp_path / name)

    def zarray(name: str, shape: tuple[int, ...]) -> str:
        image = noise.integers(0, 4000, shape, dtype=np.uint16)
        zarr.create_array(tmp_path / name, data=image, chunks=(1,) * (len(shape) - 2) + (256, 256))
        return str(tmp_path / name)

    np.save(tmp_path / "a.npy", noise.integers(0, 9, (16, 400, 400), dtype=np.uint16))
    files = [
        tiff("a.tif", (400, 400)),
        tiff("b.tif", (400, 400), compression="zlib", tile=(64, 64)),
        zarray("a.zarr", (400, 400)),
        # Up to here everything is warm; from here on there are 16 times the pixels.
        tiff("c.tif", (1600, 1600)),
        tiff("d.tif", (16, 400, 400)),
        tiff("e.tif", (1600, 1600), compression="zlib", tile=(64, 64)),
        str(tmp_path / "a.npy"),
        zarray("c.zarr", (1600, 1600)),
        zarray("d.zarr", (16, 400, 400)),
    ]
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEASURE), *files],
        capture_output=True,
        text=True,
        check=True,
    )
    peaks = [int(line) / 1024 for line in result.stdout.split()]
    assert peaks[-1] - peaks[2] < 3, f"the large images have 5 MB each; peaks in MB: {peaks}"
