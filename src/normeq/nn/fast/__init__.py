"""The same functions in less time: folding, fused layers and compilation."""
