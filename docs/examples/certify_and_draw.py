"""
Prove a property, and draw why it holds
=======================================

`normeq.certify` follows two numbers through every operation of a network: how a feature scales
with the gain of the image, and how it moves with its offset. The result holds for all images, and
can be drawn.
"""

# %%
# Layers of `normeq.nn`: kernels that sum to one, and sort pooling in the place of ReLU.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from torch import nn

import normeq
from normeq.certification import Status
from normeq.nn import AffineConv2d, SortPool

net = nn.Sequential(
    AffineConv2d(1, 16, 3, padding=1), SortPool(), AffineConv2d(16, 1, 3, padding=1)
)
certificate = normeq.certify(net)
print(certificate)
assert certificate.norm is Status.PROVEN


# %%
# The colours of a drawing are the kinds of features: those that follow the offset (E), those that
# only scale with the gain (H), and those that do not change at all (I).


def show(certificate):
    """Draw a certificate."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder, "certificate.png")
        certificate.draw(picture)
        pixels = plt.imread(picture)
    figure = plt.figure(figsize=(pixels.shape[1] / 90, pixels.shape[0] / 90))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(pixels)
    axes.set_axis_off()


show(certificate)

# %%
# One ReLU between the same layers breaks the offset, and the certificate says where.

broken = nn.Sequential(
    AffineConv2d(1, 16, 3, padding=1), nn.ReLU(), AffineConv2d(16, 1, 3, padding=1)
)
certificate = normeq.certify(broken)
print(certificate)
show(certificate)

# %%
# After differences, where kernels sum to zero, ReLU does no harm: that is the residual form of a
# small U-Net.

unet = normeq.create("unet", "norm-equiv-residual", widths=(8, 16), blocks=1)
certificate = normeq.certify(unet)
print(certificate)
show(certificate)
