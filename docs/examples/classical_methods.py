"""
Classical methods, beside the network
=====================================

`normeq.classical` has the methods that networks are compared with, from a median filter to BM3D
and WNNM. They take images in any units, and are reached by name wherever a model is.
"""

# %%
# A crop of a photograph with noise of standard deviation 25, where white is 255.

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import camera
from skimage.metrics import peak_signal_noise_ratio

import normeq

clean = camera()[76:172, 176:272].astype(np.float64)
sigma = 25.0
noisy = clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)

# %%
# Methods that are not blind are given the noise level, in the units of the image.

results = {"noisy": noisy}
for name, method in normeq.classical.METHODS.items():
    results[name] = normeq.denoise(noisy, None if method.blind else sigma, model=name)
results["default"] = normeq.denoise(noisy)

# %%

figure, panels = plt.subplots(3, 4, figsize=(10, 8.2), layout="constrained")
for panel in panels.flat:
    panel.set_axis_off()
for panel, (name, image) in zip(panels.flat, results.items(), strict=False):
    panel.imshow(image, cmap="gray", vmin=0, vmax=255)
    panel.set_title(f"{name}: {peak_signal_noise_ratio(clean, image, data_range=255):.1f} dB")

# %%
# Are they equivariant? BM3D shrinks the mean of a patch like any other coefficient, so an offset
# that brings it near zero changes the result. NL-Ridge depends on differences alone.

crop = noisy[:48, :48]
for name in ("bm3d", "nlridge", "nlm"):
    errors = normeq.equivariance_error(getattr(normeq.classical, name), crop, sigma)
    print(f"{name:<8} scale {errors.scale:.0e}   shift {errors.shift:.0e}")
