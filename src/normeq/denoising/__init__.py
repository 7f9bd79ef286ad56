"""The main job: any image in, the same image with less noise out, in its own units.

Arrays come through `arrays`, files through `files`; both are cut into bands of rows and tiles
by `run`, which an `engine` denoises.
"""
