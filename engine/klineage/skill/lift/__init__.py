"""Lifting cards out of the transitions of sealed lineages: by structure alone, or by a model whose claims are checked."""

from klineage.skill.lift.groups import Group, groups_of, named
from klineage.skill.lift.source import Source, source_of
from klineage.skill.lift.structural import lifted
from klineage.skill.lift.update import Update, updated

__all__ = ["Group", "Source", "Update", "groups_of", "lifted", "named", "source_of", "updated"]
