"""KLineage: recover the *when* of kernel optimization by walking expert kernels backward."""

__version__ = "0.1.0"
