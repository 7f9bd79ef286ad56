"""Networks written for use elsewhere: ONNX, torch.export, and packages for bioimage.io.

`exporter` is the whole: `open_sizes` traces a network for images of every size, a module for each
format writes it, and `agreement` compares what was written with PyTorch.
"""

from normeq.exporting.exporter import EXPORT_FORMATS, ExportFormat, export

__all__ = ["EXPORT_FORMATS", "ExportFormat", "export"]
