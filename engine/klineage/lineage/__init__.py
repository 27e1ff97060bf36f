"""The memory: walks, lineages, rejected attempts, drafts and reports, in one git repository."""

from klineage.lineage.branching import branch_create
from klineage.lineage.bundle import Taken, bundle_create, bundle_here, bundle_open
from klineage.lineage.edits import KeptEdit
from klineage.lineage.hunks import changes, take_hunks
from klineage.lineage.lines import BlameLine, Op, line_ops
from klineage.lineage.model import ForwardRecord, Meta, Operation, Step, StepRecord, Summary
from klineage.lineage.reading import Draft
from klineage.lineage.settled import Settlement
from klineage.lineage.workspace import Workspace
from klineage.lineage.write import Moved

__all__ = [
    "BlameLine",
    "Draft",
    "ForwardRecord",
    "KeptEdit",
    "Meta",
    "Moved",
    "Op",
    "Operation",
    "Settlement",
    "Step",
    "StepRecord",
    "Summary",
    "Taken",
    "Workspace",
    "branch_create",
    "bundle_create",
    "bundle_here",
    "bundle_open",
    "changes",
    "line_ops",
    "take_hunks",
]
