"""The layers: linear maps, nonlinearities and residuals that commute with gain and offset."""

from normeq.nn.affine_layers import AffineConv2d, AffineConvTranspose2d, AffineLinear, ZeroSumConv2d
from normeq.nn.affine_residual import AffineResidual
from normeq.nn.attention_layers import EquivariantAttention, equivariant_attention
from normeq.nn.constraint import KernelSum, constrain, init_spread_
from normeq.nn.enclosed import Enclosed
from normeq.nn.fast.folding import fold, fuse
from normeq.nn.local_wrapping import LocallyNormalized
from normeq.nn.padding import copy_pad, pad_to_multiple
from normeq.nn.sort import SortPool
from normeq.nn.wrapping import Normalized, normalized

__all__ = [
    "AffineConv2d",
    "AffineConvTranspose2d",
    "AffineLinear",
    "AffineResidual",
    "Enclosed",
    "EquivariantAttention",
    "KernelSum",
    "LocallyNormalized",
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
