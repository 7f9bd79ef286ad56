"""The napari plugin: a dock widget that denoises layers, and noisy images to try it on.

napari finds it through the manifest, ``napari.yaml``. What is computed is in `layer_run` and
`layer_walk`, which know neither Qt nor napari; `widget` puts it on the screen.
"""
