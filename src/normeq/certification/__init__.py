"""Proof of equivariance, or the operations that break it: kinds sent through a traced network."""

from normeq.certification.certificate import Certificate, Status
from normeq.certification.measurement import Counterexample, Range
from normeq.certification.operation import Operation
from normeq.certification.own_laws import register_law
from normeq.certification.prover import certify
from normeq.certification.shadow import Culprit, Shadow

__all__ = [
    "Certificate",
    "Counterexample",
    "Culprit",
    "Operation",
    "Range",
    "Shadow",
    "Status",
    "certify",
    "register_law",
]
