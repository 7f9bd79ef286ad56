"""Any network to an equivariant twin, with a report of what changed."""

from normeq.conversion.changes import Change, Report
from normeq.conversion.converter import convert

__all__ = ["Change", "Report", "convert"]
