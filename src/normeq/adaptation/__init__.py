"""Tuning a denoiser on the user's own noisy images, and judging results without ground truth."""
