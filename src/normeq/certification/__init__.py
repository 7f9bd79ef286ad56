"""Proof of equivariance, or the operations that break it: kinds sent through a traced network.

`prover` is the whole. `tracing` turns a network into plain operations, `propagation` sends a
`shadow`, which has a degree and a coefficient for each element, through all of them, and
`judgement` applies the law of each, from `rules`. `measurement` measures what the proof must agree
with, and `certificate` is the outcome.
"""

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
