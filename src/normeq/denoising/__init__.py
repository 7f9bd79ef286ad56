"""The main job: any image in, the same image with less noise out, in its own units.

Arrays come through `arrays`, files through `files`; `bands` walks over both, tile by tile, and a
`denoiser` made from a name by `names` does the work.
"""
