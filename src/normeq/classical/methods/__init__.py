"""The classical denoisers: one method a module, each a function of an image and sigma."""
