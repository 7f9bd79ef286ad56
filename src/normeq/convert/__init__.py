"""Any network to an equivariant twin, with a report of what changed."""

from normeq.convert.api import convert
from normeq.convert.report import Change, Report

__all__ = ["Change", "Report", "convert"]
