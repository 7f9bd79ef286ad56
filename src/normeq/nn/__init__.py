"""The layers: linear maps, nonlinearities and residuals that commute with gain and offset."""

from normeq.nn.affine import AffineConv2d, AffineConvTranspose2d, AffineLinear, ZeroSumConv2d
from normeq.nn.attention import EquivariantAttention, equivariant_attention
from normeq.nn.constraint import KernelSum, constrain, init_spread_
from normeq.nn.fold import fold, fuse
from normeq.nn.normalized import Normalized, normalized
from normeq.nn.padding import copy_pad, pad_to_multiple
from normeq.nn.residual import AffineResidual
from normeq.nn.sort import SortPool

__all__ = [
    "AffineConv2d",
    "AffineConvTranspose2d",
    "AffineLinear",
    "AffineResidual",
    "EquivariantAttention",
    "KernelSum",
    "Normalized",
    "SortPool",
    "ZeroSumConv2d",
    "constrain",
    "copy_pad",
    "equivariant_attention",
    "fold",
    "fuse",
    "init_spread_",
    "normalized",
    "pad_to_multiple",
]
