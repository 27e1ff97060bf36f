"""Where workers run. For now: on this machine."""

from __future__ import annotations

from klineage.executor.local import Cancelled, LocalExecutor, local

__all__ = ["Cancelled", "LocalExecutor", "local"]
