"""Any network to an equivariant twin, with a report of what changed."""

from normeq.conversion.api import convert
from normeq.conversion.report import Change, Report

__all__ = ["Change", "Report", "convert"]
