"""Command lines of agents: presets for known ones, and any other that a person has."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from klineage.errors import KlineageError
from klineage.proposer.command.streams import ClaudeStream, CodexStream, PlainStream, Stream

PROMPT = "Read TASK.md in the current folder and do exactly what it says. Nobody can answer questions."


@dataclass(frozen=True)
class Agent:
    """One command line.

    words:  the command; ``{prompt}``, ``{task}`` (the path of TASK.md) and ``{folder}`` in them are replaced,
            and where there is none of them the prompt comes last.
    stream: makes what understands its output.
    """

    name: str
    words: tuple[str, ...]
    stream: Callable[[], Stream] = PlainStream

    def command(self, folder: Path) -> list[str]:
        """The words for one run in ``folder``."""
        values = {"{prompt}": PROMPT, "{task}": str(folder / "TASK.md"), "{folder}": str(folder)}
        words = [_filled(word, values) for word in self.words]
        return words if words != list(self.words) else [*words, PROMPT]


#: The documented non-interactive modes. Neither may ask, and each may write into its folder only.
PRESETS: Mapping[str, Agent] = MappingProxyType({
    "claude": Agent(
        "claude",
        (
            "claude", "-p", "{prompt}", "--output-format", "stream-json", "--verbose",
            "--permission-mode", "acceptEdits", "--allowedTools", "Read,Write,Edit,Glob,Grep",
        ),
        ClaudeStream,
    ),
    "codex": Agent(
        "codex",
        (
            "codex", "exec", "--json", "--sandbox", "workspace-write", "--skip-git-repo-check", "--ephemeral",
            "{prompt}",
        ),
        CodexStream,
    ),
})  # fmt: skip


def agent_named(name: str, commands: Mapping[str, tuple[str, ...]]) -> Agent:
    """The agent of ``--proposer command:NAME``: one of the person's own commands, else a preset.

    A command of the same program as a preset is understood like it. Raises KlineageError for an unknown
    name, or none where there is more than one of the person's own.
    """
    if not name and len(commands) == 1:
        name = next(iter(commands))
    if name in commands:
        words = commands[name]
        known = next((agent for agent in PRESETS.values() if _speaks(agent, words)), None)
        return Agent(name, words, known.stream if known else PlainStream)
    if name in PRESETS:
        return PRESETS[name]
    names = [*commands, *PRESETS]
    if not name:
        raise KlineageError(f"say which command proposes: --proposer command:NAME, one of {', '.join(names)}")
    close = difflib.get_close_matches(name, names, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
    raise KlineageError(
        f"there is no command {name!r}; {meant} (a name = command line under [proposer.commands] of config.toml adds one)"
    )


def _speaks(preset: Agent, words: tuple[str, ...]) -> bool:
    """Whether a person's own command line makes the preset's program write what its stream reads."""
    same = Path(words[0]).name == preset.words[0]
    asked = "stream-json" in words if preset.name == "claude" else "--json" in words
    return same and asked


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word
