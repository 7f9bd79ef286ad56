"""Adaptive filters: what each pixel of a denoised image is made of."""

from normeq.explanation.adaptive_filter import MOST_PIXELS, AdaptiveFilter, explain
from normeq.explanation.file_plane import FilePlane
from normeq.explanation.filter_plot import (
    cut_out,
    describe,
    draw_pixels,
    draw_weights,
    filter_figure,
    shown_square,
)
from normeq.explanation.job_filter import explain_job, told_level

__all__ = [
    "MOST_PIXELS",
    "AdaptiveFilter",
    "FilePlane",
    "cut_out",
    "describe",
    "draw_pixels",
    "draw_weights",
    "explain",
    "explain_job",
    "filter_figure",
    "shown_square",
    "told_level",
]
