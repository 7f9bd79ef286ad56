"""Networks written for use elsewhere: ONNX, torch.export, and packages for bioimage.io."""

from normeq.exporting.exporter import EXPORT_FORMATS, ExportFormat, export

__all__ = ["EXPORT_FORMATS", "ExportFormat", "export"]
