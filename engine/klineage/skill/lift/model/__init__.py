"""The model lift: a model says what the evidence of a card means, and every claim of it is looked up."""

from klineage.skill.lift.model.lifter import LEDGER, ModelLifter, lifter_named

__all__ = ["LEDGER", "ModelLifter", "lifter_named"]
