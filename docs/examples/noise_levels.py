"""
One network for every noise level
=================================

The shipped network was trained on noise with standard deviations from 1 to 55, where white is
255. Equivariance lets it follow the noise beyond that range. This example measures it from weak
to strong noise, blind and with the level given.
"""

# %%
# Noise is added to a photograph, and PSNR is measured before and after. Without ``sigma``,
# nothing has to be known about the noise.

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import camera
from skimage.metrics import peak_signal_noise_ratio

import normeq

clean = camera()[60:252, 130:322].astype(np.float64)
rng = np.random.default_rng(0)
levels = [2, 5, 10, 25, 50, 75, 100]
noisy = [clean + sigma * rng.standard_normal(clean.shape) for sigma in levels]
blind = [normeq.denoise(image) for image in noisy]
told = [normeq.denoise(image, sigma=sigma) for image, sigma in zip(noisy, levels, strict=True)]

# %%
# Above the dotted line no such noise was seen in training.


def psnr(images):
    """Return the PSNR of each image."""
    return [peak_signal_noise_ratio(clean, image, data_range=255) for image in images]


figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for label, images in (("noisy", noisy), ("denoised", blind), ("denoised, sigma given", told)):
    axes.plot(levels, psnr(images), marker=".", label=label)
axes.axvline(55, color="gray", linestyle=":")
axes.set(xlabel="standard deviation of the noise", ylabel="PSNR (dB)")
axes.grid(alpha=0.3)
axes.legend()

# %%
# The noise level can also be estimated from the image alone.

for image, sigma in zip(noisy, levels, strict=True):
    print(f"true {sigma:>3}   estimated {normeq.estimate_sigma(image):6.1f}")

# %%
# Three of the levels, before and after:

figure, panels = plt.subplots(2, 3, figsize=(8, 5.6), layout="constrained")
for column, level in zip(panels.T, (10, 25, 75), strict=True):
    index = levels.index(level)
    column[0].set_title(f"sigma {level}")
    for panel, image in zip(column, (noisy[index], blind[index]), strict=True):
        panel.imshow(image, cmap="gray", vmin=0, vmax=255)
        panel.set_axis_off()
