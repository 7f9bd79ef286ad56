"""
Noise that grows with the signal
================================

Cameras count photons, so bright pixels are noisier than dark ones: the variance of the noise is
``gain · signal + base``. By default, `normeq.denoise` estimates both from the image alone, and
brings the noise to one level before the network sees it.
"""

# %%
# A simulated camera: 16-bit counts with an offset of 100, a gain of 8 counts for each
# photo-electron, and read noise.

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import camera
from skimage.metrics import peak_signal_noise_ratio

import normeq
from normeq.noise import estimate_noise, poisson_gaussian

clean = 4.0 * camera()[60:316, 130:386]
counts = 100 + poisson_gaussian(clean, 8.0, 10.0, np.random.default_rng(0))
noisy = counts.round().clip(0).astype(np.uint16)

# %%
# What the image alone tells about its noise. The offset is part of the base, which is therefore
# 10² - 8·100 = -700.

model = estimate_noise(noisy)
print(model.describe())
print(f"gain {model.gain:.2f}, base {model.base:.0f}")

# %%
# The same network, with the noise taken for Gaussian noise of one level, and with what was found.

results = {
    "noisy": noisy,
    'noise="gaussian"': normeq.denoise(noisy, noise="gaussian"),
    'noise="auto"': normeq.denoise(noisy),
}
figure, panels = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
for panel, (name, image) in zip(panels, results.items(), strict=True):
    panel.imshow(image, cmap="gray", vmin=100, vmax=1100)
    score = peak_signal_noise_ratio(clean, image - 100.0, data_range=1020)
    panel.set_title(f"{name}: {score:.1f} dB")
    panel.set_axis_off()

# %%
# What was removed should be noise: stronger where the image is brighter, but without edges.

figure, panels = plt.subplots(1, 2, figsize=(7, 3.7), layout="constrained")
for panel, name in zip(panels, list(results)[1:], strict=True):
    panel.imshow(noisy - results[name].astype(float), cmap="gray", vmin=-200, vmax=200)
    panel.set_title(f"removed with {name}")
    panel.set_axis_off()
