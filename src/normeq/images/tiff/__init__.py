"""TIFF in its dialects (BigTIFF, OME-TIFF, ImageJ and others that tifffile reads).

`reader` gives rows of pixels, `directories` checks the file's structure before tifffile follows
it, `writer` copies a file with new pixels: `page_layout` is how those are stored, `tags` what is
said of them, `exif` and `ome_xml` the parts of that which hold places in the file.
"""
