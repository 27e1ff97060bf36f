"""Where workers run. For now: on this machine."""

from __future__ import annotations

from klineage.executor.local import LocalExecutor, local
from klineage.executor.parent import Cancelled

__all__ = ["Cancelled", "LocalExecutor", "local"]
