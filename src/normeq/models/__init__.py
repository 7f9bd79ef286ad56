"""The networks, each in every variant, and their weights.

A module for each architecture uses the layers that `building_blocks` has for a variant.
`registry` builds a network by its name, and `weights` saves and loads it.
"""

from normeq.models.building_blocks import VARIANTS, Variant
from normeq.models.denoising_network import DenoisingNetwork, WrappedDenoisingNetwork
from normeq.models.drunet import DRUNet
from normeq.models.fdncnn import FDnCNN
from normeq.models.ffdnet import FFDNet
from normeq.models.network import Network, Wrapped
from normeq.models.noise_maps import TAKES_SIGMA, TakesSigma
from normeq.models.published import import_weights
from normeq.models.registry import create, names, register, variants
from normeq.models.unet import UNet
from normeq.models.vgg8b import VGG8b
from normeq.models.weights import load, read_card, save, shipped

__all__ = [
    "TAKES_SIGMA",
    "VARIANTS",
    "DRUNet",
    "DenoisingNetwork",
    "FDnCNN",
    "FFDNet",
    "Network",
    "TakesSigma",
    "UNet",
    "VGG8b",
    "Variant",
    "Wrapped",
    "WrappedDenoisingNetwork",
    "create",
    "import_weights",
    "load",
    "names",
    "read_card",
    "register",
    "save",
    "shipped",
    "variants",
]
