"""The gauntlet's table in docs/gate.md, and the gauntlet by hand.

python -m tests.gauntlet              print the table
python -m tests.gauntlet --write      put it into docs/gate.md
python -m tests.gauntlet --run WORD   gate the cases (jury too) whose id has WORD, and say what each got
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from . import table
from .cases import GPU_SURFACES, cheats, honest


def _run(word: str) -> int:
    from klineage.gate import Verdict

    from .running import complaint, decided, judge

    wrong = broken = 0
    for case in [*cheats(), *honest()]:
        if case.surface in GPU_SURFACES or word not in case.id or case.expected.skip:
            continue
        begin = time.perf_counter()
        report = judge(case)
        said = complaint(case, report)
        wrong += bool(said)
        broken += report.verdict is Verdict.ERROR
        if broken > 3:
            print("the gate itself is broken")
            return wrong
        taken = time.perf_counter() - begin
        print(f"{taken:6.2f} s  {case.id:38} {said or ' '.join(decided(report))}", flush=True)
    return wrong


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--run"]:
        return _run(arguments[1] if len(arguments) > 1 else "")
    if arguments[:1] == ["--write"]:
        path = Path(table.DOCUMENT)
        path.write_text(table.placed(path.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    print(table.rendered())
    return 0


sys.exit(main(sys.argv[1:]))
