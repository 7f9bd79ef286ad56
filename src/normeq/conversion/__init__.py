"""Any network to an equivariant twin, with a report of what changed."""

from normeq.conversion.changes import Change, ConversionReport
from normeq.conversion.converter import convert

__all__ = ["Change", "ConversionReport", "convert"]
