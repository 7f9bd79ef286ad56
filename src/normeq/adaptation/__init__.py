"""Tuning a denoiser on the user's own noisy images, and judging results without ground truth."""

from normeq.adaptation.own_images import adapt

__all__ = ["adapt"]
