"""What one block of threads may use on each NVIDIA architecture, after the CUDA programming guide."""

from __future__ import annotations

from dataclasses import dataclass

from klineage.errors import KlineageError
from klineage.platform.order import Platform, parse


@dataclass(frozen=True)
class Limits:
    """Hard limits of one architecture. A kernel above any of them compiles but cannot be launched."""

    shared_bytes_per_block: int  # the most that a block can opt into
    registers_per_thread: int
    registers_per_block: int
    threads_per_block: int


def _limits(shared_kib: int) -> Limits:
    return Limits(shared_kib << 10, 255, 65536, 1024)


_NVIDIA = {
    75: _limits(64),
    80: _limits(163),
    86: _limits(99),
    87: _limits(163),
    89: _limits(99),
    90: _limits(227),
    100: _limits(227),
    103: _limits(227),
    120: _limits(99),
    121: _limits(99),
}


def limits(platform: str | Platform) -> Limits:
    """The limits of an NVIDIA platform. Raises KlineageError for one that the table lacks."""
    target = parse(platform) if isinstance(platform, str) else platform
    if target.vendor != "nvidia" or target.capability not in _NVIDIA:
        known = ", ".join(f"nvidia-sm{sm}" for sm in sorted(_NVIDIA))
        raise KlineageError(f"no launch limits are known for {target}; known are {known}")
    return _NVIDIA[target.capability]


def exceeded(
    platform: str | Platform, *, shared_bytes: int = 0, registers: int = 0, threads: int = 0
) -> tuple[str, str] | None:
    """The first limit that a kernel breaks, as (reason code, sentence with both numbers), or None."""
    limit = limits(platform)
    if shared_bytes > limit.shared_bytes_per_block:
        return (
            "shared_memory",
            f"needs {shared_bytes} bytes of shared memory; "
            f"{platform} has {limit.shared_bytes_per_block} a block",
        )
    if threads > limit.threads_per_block:
        return "threads", f"needs {threads} threads; {platform} allows {limit.threads_per_block} a block"
    if registers > limit.registers_per_thread or registers * threads > limit.registers_per_block:
        return (
            "registers",
            f"needs {registers} registers in each of {threads} threads; "
            f"{platform} has {limit.registers_per_block} a block",
        )
    return None
