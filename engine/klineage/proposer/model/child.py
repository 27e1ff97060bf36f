"""The child that makes one call: ``python -m klineage.proposer.model.child <folder>``.

It finishes within its time whatever becomes of its parent: the reply is written as it comes, then the outcome,
then the ledger.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from klineage.errors import KlineageError
from klineage.proposer.base import ProposerEvent
from klineage.proposer.folder import CallFolder
from klineage.proposer.question import Outcome
from klineage.proposer.secrets import redacted, without_values


def main(path: str) -> None:
    """Make the call of one folder."""
    folder = CallFolder(Path(path))
    folder.mark("pid", str(os.getpid()))
    question = folder.question()
    if question is None:
        return
    folder.add(ProposerEvent("status", f"asking {question.model}"))
    try:
        from klineage.proposer.model.asking import ask

        outcome = ask(folder, question, folder.client())
    except KlineageError as error:
        outcome = Outcome("failed", problem=str(error), spent="unknown" if folder.has("sent") else "nothing")
    except Exception as defect:
        # Only its kind: the text of an unforeseen exception may quote anything.
        problem = f"the call ended in a defect: {type(defect).__name__}"
        outcome = Outcome("failed", problem=problem, spent="unknown" if folder.has("sent") else "nothing")
    # What an answer holds goes on into commits: whoever is asked knows the key, and might say it.
    text = without_values(outcome.text, os.environ)
    folder.finish(replace(outcome, text=text, problem=redacted(outcome.problem)))


if __name__ == "__main__":
    main(sys.argv[1])
