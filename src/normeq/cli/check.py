"""The check command: measured equivariance of a model."""
def check() -> None:
    """Not yet."""
