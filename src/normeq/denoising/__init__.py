"""The main job: any image in, the same image with less noise out, in its own units.

Arrays come through `arrays`, files through `files`. An `image_job` denoises one rectangle of an
image, `bands` walks over all of it, and a `denoiser` made from a name by `names` does the work.
"""
