"""A gain counts only if it is one at every noise level that is plausible."""

from __future__ import annotations

import numpy as np

from normeq.adaptation.held_out import HeldOut, Terms
from normeq.adaptation.judge import Judge


class _TwoNetworks(HeldOut):
    """Held-out tiles on which networks are known by their terms."""

    def __init__(self):
        self._windows = []

    def terms(self, net):
        return net

    def rmse(self, terms, level):
        return 1.0


def constant(residual, divergence):
    return Terms([np.full((1, 32, 32), residual)], [np.full((1, 32, 32), divergence)])


def test_a_rough_estimate_of_the_noise_needs_a_larger_gain():
    """A network that keeps more of the noise seems better if its level is taken too low."""
    before, after = constant(0.8, 0.2), constant(0.779, 0.21)
    tiles = _TwoNetworks()
    assert Judge(tiles, before, 1.0).gain(after).certain > 0
    assert Judge(tiles, before, 1.0, is_rough=True).gain(after).certain < 0
