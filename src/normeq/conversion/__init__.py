"""Any network to an equivariant twin, with a report of what changed."""

from normeq.conversion.changes import Change, ConversionReport
from normeq.conversion.converter import convert
from normeq.conversion.saving import load_twin, save_twin

__all__ = ["Change", "ConversionReport", "convert", "load_twin", "save_twin"]
