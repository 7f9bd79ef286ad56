"""
Convert your own network
========================

`normeq.convert` turns a network with biases, batch normalization and ReLU into a twin that is
normalization-equivariant, and proves it. The twin starts from the weights of the original and
should be trained on.
"""

# %%
# An ordinary network, as written by someone who did not think of units.

import matplotlib.pyplot as plt
import numpy as np
import torch
from skimage.data import camera
from torch import nn

import normeq


class Denoiser(nn.Module):
    """Predicts the noise and subtracts it."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 1, 3, padding=1),
        )

    def forward(self, image):
        """Return the image less what the layers predict."""
        return image - self.body(image)


# %%
# It learns to denoise crops of a photograph in [0, 1], in a few seconds and without ambition.

photograph = torch.from_numpy(camera() / 255).float()


def batch(generator):
    """Return eight clean crops and their noisy versions."""
    corners = torch.randint(0, 512 - 48, (8, 2), generator=generator).tolist()
    crops = torch.stack([photograph[None, y : y + 48, x : x + 48] for y, x in corners])
    return crops, crops + 0.1 * torch.randn(crops.shape, generator=generator)


def train(net, steps):
    """Minimise the mean squared error."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    net.train()
    for _ in range(steps):
        clean, noisy = batch(generator)
        optimizer.zero_grad()
        nn.functional.mse_loss(net(noisy), clean).backward()
        optimizer.step()
    return net.eval()


torch.manual_seed(0)
net = train(Denoiser(), 100)

# %%
# Its certificate names every layer that breaks the property.

print(normeq.certify(net))

# %%
# The twin has the property by construction. The report says what was replaced.

twin, report = normeq.convert(net, "norm-equiv-residual")
twin = train(twin, 100)
print(report)
print()
print(normeq.certify(twin))

# %%
# On images in [0, 1] both denoise. With another gain and offset only the twin does.

with torch.no_grad():
    crop = photograph[None, None, 60:188, 130:258]
    noisy = crop + 0.1 * torch.randn(crop.shape, generator=torch.Generator().manual_seed(1))
    rows = {
        "in [0, 1]": (1.0, 0.0),
        "gain 100, offset 1000": (100.0, 1000.0),
    }
    figure, panels = plt.subplots(2, 3, figsize=(8, 5.8), layout="constrained")
    for line, (name, (gain, offset)) in zip(panels, rows.items(), strict=True):
        given = gain * noisy + offset
        for panel, image, title in zip(
            line,
            (given, net(given), twin(given)),
            (name, "the network", "its twin"),
            strict=True,
        ):
            panel.imshow(image[0, 0], cmap="gray", vmin=offset, vmax=offset + gain)
            error = ((image - offset) / gain - crop).square().mean().item()
            panel.set_title(f"{title}: {-10 * np.log10(error):.1f} dB")
            panel.set_axis_off()
