"""
Denoise in any units
====================

The same photograph is stored in [0, 1], as electrons, and with its background subtracted.
A denoiser that is normalization-equivariant gives the same result for all three, each in its own
units: ``f(λ·y + μ) = λ·f(y) + μ``.
"""

# %%
# A clean photograph, and noise with a standard deviation of a tenth of its range.

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import camera

import normeq

clean = camera()[60:252, 130:322] / 255
noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)

# %%
# The three versions differ by a gain and an offset. Nothing tells `normeq.denoise` which.

versions = {
    "unit range": (1.0, 0.0),
    "electrons": (2.3e4, 1.1e6),
    "background subtracted": (1e-3, -5e-4),
}
results = {name: normeq.denoise(gain * noisy + offset) for name, (gain, offset) in versions.items()}

# %%
# Each result is in the units of its input.

figure, panels = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
panels[0].imshow(noisy, cmap="gray", vmin=0, vmax=1)
panels[0].set_title("noisy")
for panel, (name, result) in zip(panels[1:], results.items(), strict=True):
    gain, offset = versions[name]
    drawn = panel.imshow(result, cmap="gray", vmin=offset, vmax=gain + offset)
    panel.set_title(name)
    figure.colorbar(drawn, ax=panel, fraction=0.046, pad=0.03)
for panel in panels:
    panel.set_axis_off()

# %%
# Brought back to one unit, they agree to rounding. The largest difference at any pixel, in
# standard deviations of the image:

for name, result in results.items():
    gain, offset = versions[name]
    difference = (result - offset) / gain - results["unit range"]
    print(f"{name:<22} {np.abs(difference).max() / noisy.std():.1e}")
