"""Any agent's command line as a proposer."""

from klineage.proposer.command.agents import PRESETS, PROMPT, Agent, agent_named
from klineage.proposer.command.proposer import CommandProposer

__all__ = ["PRESETS", "PROMPT", "Agent", "CommandProposer", "agent_named"]
