"""
What a denoised pixel is made of
================================

Close to an image, a network is a weighted mean, with other weights for every pixel. In a flat area
it averages many pixels; at an edge it averages along the edge; in texture it hardly averages at
all. The weights always sum to one.
"""

# %%
# A photograph with noise, and three pixels of it.
import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import normeq
from normeq.explanation import draw_pixels, draw_weights

clean = data.camera().astype(np.float64)
noisy = clean + 20 * np.random.default_rng(0).standard_normal(clean.shape)
places = {"flat": (60, 60), "edge": (384, 272), "texture": (430, 330)}

# %%
# The filter of each, with the pixels around it. Red weights are positive, blue ones negative.
net = normeq.load("default")
filters = [normeq.explain(net, noisy, place, sigma=20) for place in places.values()]
figure, panels = plt.subplots(2, 3, figsize=(8, 5.4), layout="constrained")
for (above, below), name, each in zip(panels.T, places, filters, strict=True):
    above.set_title(name)
    draw_pixels(above, each)
    draw_weights(below, each)

# %%
# The sum of the weights, how many pixels they average, and what is left of the noise.
for name, each in zip(places, filters, strict=True):
    print(f"{name:8} {each.sum:.4f} {each.effective_pixels:6.0f} {each.noise_left:5.1f}")
