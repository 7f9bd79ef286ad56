"""Tuning a denoiser on the user's own noisy images, and judging results without ground truth.

`tuning_job` is the whole of the first: `noisy_planes` reads tiles in units of their noise,
`teacher` makes results that the network can learn from, `tile_stream` draws the pairs of each step,
`tuner` takes the steps, and `judge` compares networks on the tiles of `held_out`. `assessment` is
the whole of the second: `error_interval` estimates the error, and `residual_check` compares what
was removed with noise.
"""

from normeq.adaptation.own_images import adapt

__all__ = ["adapt"]
