"""How long networks take, and what equivariance adds to it."""

from normeq.bench.arithmetic import multiply_adds
from normeq.bench.variant_times import NETWORKS, Case, Timing, measure
from normeq.bench.whole_command import CommandPart, denoise_parts

__all__ = [
    "NETWORKS",
    "Case",
    "CommandPart",
    "Timing",
    "denoise_parts",
    "measure",
    "multiply_adds",
]
