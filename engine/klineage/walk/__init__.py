"""Walking an expert kernel backward: the one interface that the app and the command line act through."""

from klineage.walk.automatic import Listener, WalkLimits, WalkOutcome, walk_automatically
from klineage.walk.opening import demo, new_lineage, open_workspace, tested_oracle
from klineage.walk.session import Walk
from klineage.walk.state import WalkState
from klineage.walk.trust import Untrusted

__all__ = [
    "Listener",
    "Untrusted",
    "Walk",
    "WalkLimits",
    "WalkOutcome",
    "WalkState",
    "demo",
    "new_lineage",
    "open_workspace",
    "tested_oracle",
    "walk_automatically",
]
