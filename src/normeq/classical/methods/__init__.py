"""The classical denoisers: one method per module, each a function of an image and sigma."""
