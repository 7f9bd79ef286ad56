"""Proof of equivariance, or the operations that break it: kinds sent through a traced network."""

from normeq.certify.api import certify
from normeq.certify.certificate import Certificate, Status
from normeq.certify.shadow import Culprit

__all__ = ["Certificate", "Culprit", "Status", "certify"]
