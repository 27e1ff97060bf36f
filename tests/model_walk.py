"""A model that knows what the rules know: answers for ``MessagesServer``, for a whole walk in both directions.

In a test::

    messages.otherwise = RulesModel()          # any lineage of a shipped expert, backward and forward

By hand, from the root of a checkout, to walk with a model in a real terminal::

    python -m tests.model_walk                 # prints what to export, serves until Ctrl-C, then counts
    klineage walk gemm-c --proposer model
"""

from __future__ import annotations

import ast
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from klineage.kernel import Kernel
from klineage.proposer import rules
from klineage.proposer.candidate import Candidate

from .messages_server import Answer, MessagesServer, Received, Reply, slowly

_FENCED = re.compile(r"^<<<([0-9a-f]{32}) (\w+)[^\n]*\n(.*?)\n>>>\1$", re.DOTALL | re.MULTILINE)


def parts(request: Received) -> dict[str, str]:
    """The fenced data of a request by its kind: ``workload``, ``file``, ``features``, ``goal``, ``attempts`` ..."""
    return {kind: text for _, kind, text in _FENCED.findall(request.text)}


def kernel_in(request: Received) -> Kernel:
    """The kernel that a request is about."""
    facts = dict(
        re.findall(r"^(File|Language|Entry|Pinned configuration|Compiler flags): (.*)$", request.text, re.M)
    )
    config = tuple(ast.literal_eval(facts.get("Pinned configuration", "{}")).items())
    flags = tuple(facts.get("Compiler flags", "").split())
    source = parts(request)["file"].encode()
    return Kernel(facts["Language"], facts["File"], facts["Entry"], source, config, flags)  # type: ignore[arg-type]


def spoken(candidate: Candidate, **changes: Any) -> dict[str, Any]:
    """A candidate in the form in which a model answers."""
    return {
        "decision": "propose",
        "rationale": candidate.rationale,
        "title": candidate.title,
        "action": candidate.action,
        "locus": candidate.locus,
        "removes": [str(feature) for feature in candidate.removes],
        "settings": [{"name": name, "value": value} for name, value in candidate.settings.items()],
        "preconditions": list(candidate.preconditions),
        "source": candidate.source.decode(),
        "edits": [],
    } | changes


def nothing(why: str) -> dict[str, Any]:
    """The answer that no mechanism is left."""
    empty = Candidate("", "", "", why, b"")
    return spoken(empty, decision="nothing")


@dataclass(frozen=True)
class RulesModel:
    """Answers with the first proposal of the rules that was not tried, or with a rule's own forward edit.

    change: makes another reply of the honest one, e.g. a wrong one now and then.
    """

    change: Callable[[Received, Reply], Answer] | None = None

    def __call__(self, request: Received) -> Answer:
        reply = Reply(self._forward(request) if "goal" in parts(request) else self._backward(request))
        return reply if self.change is None else self.change(request, reply)

    def _backward(self, request: Received) -> dict[str, Any]:
        lines = parts(request).get("attempts", "").splitlines()
        tried = {(row["title"], row["locus"]) for row in map(json.loads, lines)}
        for candidate in rules.propose(kernel_in(request)):
            if (candidate.title, candidate.locus) not in tried:
                return spoken(candidate)
        return nothing("Every mechanism that I know is gone.")

    def _forward(self, request: Received) -> dict[str, Any]:
        goal = json.loads(parts(request)["goal"])
        kernel = kernel_in(request)
        try:
            source = rules.derive(goal["action"], kernel, goal["locus"], goal["settings"])
        except rules.NotApplicable as error:
            return nothing(str(error))
        said = Candidate(goal["action"], goal["locus"], f"Add {goal['action']}", goal["rationale"], source)
        return spoken(said)


def main() -> None:
    """Serve until Ctrl-C."""
    with MessagesServer(otherwise=RulesModel(lambda _, reply: slowly(reply))) as server:
        for name, value in server.environment.items():
            print(f"export {name}={value}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(server.served)


if __name__ == "__main__":
    main()
