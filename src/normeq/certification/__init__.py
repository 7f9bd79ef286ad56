"""Proof of equivariance, or the operations that break it: kinds sent through a traced network."""

from normeq.certification.certificate import Certificate, Status
from normeq.certification.measurement import Counterexample, Range
from normeq.certification.prover import certify
from normeq.certification.shadow import Culprit

__all__ = ["Certificate", "Counterexample", "Culprit", "Range", "Status", "certify"]
