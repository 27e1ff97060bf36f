"""The `klineage` command: the app, and every verb of the app without it.

Only the standard library is imported here; a verb imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from klineage import __version__
from klineage.errors import KlineageError

#: verb -> (module in klineage_tui.commands, one line of help). The order is that of `--help`.
VERBS: dict[str, tuple[str, str]] = {
    "demo": ("start", "open the app on a workspace made from the shipped experts"),
    "new": ("start", "start a lineage from an expert kernel"),
    "workload": ("workloads", "show a workload, or another project's problem as one"),
    "import-series": ("series", "make a lineage of versions: numbered files, or a git history"),
    "list": ("read", "list the lineages of the workspace"),
    "propose": ("walking", "list what rules offer for the current state, or ask a model or a command"),
    "gate": ("gating", "judge a kernel: static, compile, correctness, profile"),
    "walk": ("automatic", "walk backward by any proposer, accepting what passes the gate"),
    "record": ("proposing", "ask a proposer once, and keep the conversation in a file"),
    "replay": ("proposing", "show a recorded conversation; --proposer replay:FILE answers from it"),
    "accept": ("deciding", "gate a proposal (or a file of yours) and make it the next step"),
    "reject": ("deciding", "keep a proposal as a rejected attempt, with the reason"),
    "undo": ("deciding", "take the last decision back"),
    "redo": ("deciding", "take the last undone decision again"),
    "branch": ("branching", "go on from any state as a lineage of its own"),
    "features": (
        "features",
        "what mechanisms a kernel has: present, absent or unknown, and the lines that show it",
    ),
    "derive": ("deriving", "make the forward edit of each accepted step, and say whether it holds"),
    "seal": ("walking", "end the walk: derive, check and write the forward lineage"),
    "log": ("read", "list the steps of a lineage"),
    "show": ("read", "show one step: its metadata, gate reports and kernel"),
    "diff": ("read", "compare the kernels of two steps"),
    "blame": ("read", "say which optimization wrote each line of the expert"),
    "ledger": ("spending", "what paid calls cost, by call, step, lineage or day; what a walk may cost"),
    "check": (
        "checking",
        "ask the preconditions of a card of a kernel: holds, fails or unknown; nothing is run",
    ),
    "probe": ("probing", "break a precondition of a card on purpose, and gate what comes of it"),
    "ablate": (
        "ablating",
        "what each optimization of a lineage is worth first, in order and last, and what it stands on",
    ),
    "admit": ("admitting", "try a card, alone, on a kernel that it was not lifted from"),
    "retrieve": ("retrieving", "which cards hold for a kernel, why, and what the near ones need first"),
    "export": ("exporting", "write cards as Agent Skills for coding agents, or as training records"),
    "import-cards": ("exporting", "take in cards of the paper's authors, as hypotheses"),
    "mcp": ("serving", "serve cards, checks and gates to agents over MCP, on stdin and stdout"),
    "bundle": ("bundles", "carry a lineage in one file: create, open"),
    "lift": ("lifting", "make cards of the transitions of sealed lineages, each claim with its evidence"),
    "card": (
        "cards",
        "the cards of a library: list, show, edit, lint, merge, split, retire, history, undo, redo",
    ),
    "library": (
        "pulling",
        "bring cards from elsewhere, merge and compare libraries: pull, merge, diff, write",
    ),
    "gate-batch": ("batches", "gate on a machine that is reached by hand: export, run, import"),
    "doctor": ("health", "what this machine can gate, and how to get what is missing"),
}

#: Errors of the system that name their own cause, and that no code of klineage can have made.
_SURROUNDINGS = (
    errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP,
)  # fmt: skip

_DESCRIPTION = "Walk an expert kernel backward, one gated simplification at a time, and keep what it teaches."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line. Returns the exit code: 0 only on success, 1 for a refusal,
    2 for a wrong call, 70 for a defect of klineage itself."""
    words = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A kernel may hold characters that the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _run(words)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KlineageError as error:
        from klineage_tui.text.sanitize import sanitize

        print(f"klineage: {sanitize(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _forget_stdout()  # the reader (head, less) has gone
        return 0
    except OSError as error:
        from klineage_tui.text.sanitize import sanitize

        if error.errno not in _SURROUNDINGS:
            return _defect(error)
        _forget_stdout()
        what = f"use {error.filename}" if error.filename else "write the output"
        print(f"klineage: cannot {sanitize(what)}: {error.strerror}", file=sys.stderr)
        return 1
    except Exception as defect:
        return _defect(defect)


def _forget_stdout() -> None:
    """Python would complain again about what is still unwritten, while closing stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _defect(problem: Exception) -> int:
    from klineage_tui.crash import log_exception

    where = log_exception(problem)
    print(
        f"klineage: a defect in klineage ({type(problem).__name__}); the details are in {where}",
        file=sys.stderr,
    )
    return 70


def _run(words: list[str]) -> int:
    if words and words[0] in VERBS:
        verb, rest = words[0], words[1:]
        parser = argparse.ArgumentParser(prog=f"klineage {verb}", description=VERBS[verb][1])
        module = importlib.import_module(f"klineage_tui.commands.{VERBS[verb][0]}")
        run = module.COMMANDS[verb](parser)
        return int(run(_parsed(parser, rest)))
    return _open_app(words)


def _parsed(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """The words of a verb, whose arguments may stand after its options: ``accept ID -w DIR 2``."""
    try:
        return parser.parse_intermixed_args(words)
    except (
        TypeError
    ):  # argparse cannot do that where a verb has verbs of its own, and says so before it reads
        return parser.parse_args(words)


def _open_app(words: list[str]) -> int:
    width = max(len(verb) for verb in VERBS)
    parser = argparse.ArgumentParser(
        prog="klineage",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="klineage [WORKSPACE] [--lineage ID] | klineage VERB ...",
        epilog="verbs (klineage VERB --help for each):\n"
        + "\n".join(f"  {verb:<{width}}  {help}" for verb, (_, help) in VERBS.items()),
    )
    parser.add_argument(
        "workspace", nargs="?", type=Path, help="a git repository with lineages (default: here)"
    )
    parser.add_argument("--lineage", metavar="ID", help="open this lineage")
    parser.add_argument("--version", action="version", version=f"klineage {__version__}")
    arguments = parser.parse_args(words)
    workspace: Path = arguments.workspace or default_workspace()
    if arguments.workspace and not workspace.exists() and workspace.parent == Path():
        raise KlineageError(
            f"there is no command or folder named {str(workspace)!r}; klineage --help lists the commands"
        )
    from klineage_tui.app import run

    return run(workspace, arguments.lineage)


def default_workspace() -> Path:
    """`KLINEAGE_WORKSPACE`, or the current folder."""
    return Path(os.environ.get("KLINEAGE_WORKSPACE") or ".")


if __name__ == "__main__":
    sys.exit(main())
