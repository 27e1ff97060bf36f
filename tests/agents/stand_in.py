#!/usr/bin/env python3
"""A stand-in for an agent's command line: a real program with no model in it.

    stand_in.py BEHAVIOUR PROMPT

It works in the current folder, as TASK.md there asks, and behaves as it is told to.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path.cwd()
KERNEL = next(path for path in sorted(HERE.glob("kernel.*")))
ANSWER = HERE / "answer"
ENTRY = re.search(rb"void (\w+)\(", KERNEL.read_bytes()).group(1).decode()
LOOP = "for[r]/for[i]" if ENTRY == "row_norms" else "for[i]"


def answer(source, name=KERNEL.name, **fields):
    (ANSWER / name).write_bytes(source)
    said = {
        "action": "restrict",
        "locus": f"{KERNEL.name}::{ENTRY}",
        "title": "Let the pointers overlap",
        "rationale": "The compiler may no longer assume that the rows are apart.",
        "settings": {},
        **fields,
    }
    (ANSWER / "answer.json").write_text(json.dumps(said))


def simpler():
    return KERNEL.read_bytes().replace(b" restrict ", b" ")


def course():
    """Put back what the task asks for, from its name and its settings alone."""
    source, task = KERNEL.read_bytes(), (HERE / "TASK.md").read_text()
    action = re.search(r"^- action: (\w+)$", task, re.MULTILINE).group(1)
    if action == "restrict":
        answer(re.sub(rb"float \*(?=\w+[,)])", b"float * restrict ", source.replace(b"float * ", b"float *")))
    else:
        factor = re.search(r"factor=(\d+)", task).group(1)
        pragma = f"#pragma GCC unroll {factor}\n".encode()
        loop = re.search(rb"^[ \t]*for \(int64_t i\b", source, re.MULTILINE).start()
        answer(
            source[:loop] + pragma + source[loop:], action="unroll", locus=f"{KERNEL.name}::{ENTRY}/{LOOP}"
        )


def walk():
    """Take out the unrolling, then the promise about pointers; then there is nothing left."""
    source = KERNEL.read_bytes()
    pragma = re.search(rb"^[ \t]*#pragma GCC unroll (\d+)\r?\n", source, re.MULTILINE)
    if pragma:
        answer(
            source.replace(pragma.group(), b"", 1),
            action="unroll",
            locus=f"{KERNEL.name}::{ENTRY}/{LOOP}",
            title="Remove the unrolling",
            settings={"factor": pragma.group(1).decode()},
        )
    elif b" restrict " in source:
        answer(simpler())
    else:
        (ANSWER / "answer.json").write_text('{"nothing": "one plain loop"}')


def good():
    print("reading the kernel", flush=True)
    print("\x1b[31mwriting\x1b]0;title\x07", flush=True)
    answer(simpler())


USAGE = {
    "input_tokens": 12,
    "cache_creation_input_tokens": 300,
    "cache_read_input_tokens": 4000,
    "output_tokens": 50,
}
CLAUDE = (
    {"type": "system", "subtype": "init", "model": "a-model"},
    {
        "type": "assistant",
        "message": {
            "id": "msg_1",
            "content": [{"type": "text", "text": "I take restrict out."}],
            "usage": USAGE,
        },
    },
    {
        "type": "assistant",
        "message": {
            "content": [{"type": "tool_use", "name": "Write", "input": {"file_path": "answer/kernel.c"}}]
        },
    },
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "total_cost_usd": 0.0123,
        "usage": USAGE,
    },
)


def claude_says(*records):
    for record in records:
        print(json.dumps(record), flush=True)


def claude():
    """Writes what `claude -p --output-format stream-json` documents."""
    claude_says(*CLAUDE)
    answer(simpler())


def lingers():
    """Has answered, and goes on."""
    claude_says(*CLAUDE[:2])
    answer(simpler())
    hangs()


def refuses():
    print(
        json.dumps(
            {"type": "result", "subtype": "error_max_turns", "is_error": True, "result": "too many turns"}
        )
    )


def hangs():
    print(f"thinking, pid {os.getpid()}", flush=True)
    time.sleep(3600)


def stubborn():
    """Does not end when it is asked to."""
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (HERE / "ready").write_text("")
    print(f"pid {os.getpid()}", flush=True)
    time.sleep(3600)


def forks():
    """Leaves a grandchild in its group and one that has left it, and hangs."""
    stay = subprocess.Popen(["sleep", "3600"])
    away = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    print(f"pids {stay.pid} {away.pid}", flush=True)
    time.sleep(3600)


def leaves():
    """Answers, and leaves a process behind."""
    away = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    print(f"pids {away.pid}", flush=True)
    answer(simpler())


def floods():
    line = b"x" * 999 + b"\n"
    for _ in range(20_000):
        sys.stdout.buffer.write(line)
    sys.stdout.buffer.write(b"y" * (6 << 20))
    answer(simpler())


def meddles():
    (HERE / "workload.py").write_text("REFERENCE = None\n")
    (HERE / "TASK.md").unlink()
    (HERE / "notes.txt").write_text("mine")
    (HERE.parent / "mine").mkdir()
    (HERE.parent / "mine" / "plan.txt").write_text("mine")
    (ANSWER / "log.txt").write_text("mine")
    answer(simpler())


def in_place():
    KERNEL.write_bytes(simpler())


def nothing():
    print("I could not find anything to simplify.")


def two():
    answer(simpler())
    (ANSWER / f"other{KERNEL.suffix}").write_bytes(simpler())


def unchanged():
    answer(KERNEL.read_bytes())


def broken():
    answer(simpler().replace(b"{", b"", 1))


def learns():
    """Answers with the fault of its first answer mended."""
    if "it wrote no kernel" in (HERE / "TASK.md").read_text():
        answer(simpler())


def unnamed():
    (ANSWER / KERNEL.name).write_bytes(simpler())


def garbled():
    answer(simpler())
    (ANSWER / "answer.json").write_text('{"action": "restrict"')


def linked():
    answer(simpler())
    (ANSWER / KERNEL.name).unlink()
    (ANSWER / KERNEL.name).symlink_to("/etc/hostname")


def piped():
    answer(simpler())
    (ANSWER / KERNEL.name).unlink()
    os.mkfifo(ANSWER / KERNEL.name)


def fails():
    print("no credit left", file=sys.stderr)
    sys.exit(3)


def babbles():
    """Shows a key that it has from its environment, and gives up."""
    print("using", os.environ["SOME_API_KEY"], flush=True)
    print("refused:", os.environ["SOME_API_KEY"], file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    assert sys.argv[2:], "the prompt is the last word"
    assert "answer/" in (HERE / "TASK.md").read_text()
    forward = (HERE / "TASK.md").read_text().startswith("# Add one optimization")
    globals()["course" if forward else sys.argv[1]]()
