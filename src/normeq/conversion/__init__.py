"""Any network to an equivariant twin, with a report of what changed.

`converter` is the whole. It edits a copy of the network, a `network_editor`, by the rules of
`affine_form` or `scale_form`: layers are exchanged, and operations in the `forward_pass` of a
module. `enclosing` puts on ratios what has no counterpart, and `residual_form` goes around the
result.
"""

from normeq.conversion.changes import Change, ConversionReport
from normeq.conversion.converter import convert
from normeq.conversion.saving import load_twin, save_twin

__all__ = ["Change", "ConversionReport", "convert", "load_twin", "save_twin"]
