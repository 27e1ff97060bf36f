"""The lineage as rows: graph, waterfall, blame, reasons, git commands."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from klineage.kernel import Feature
from klineage.lineage import Op, Step
from rich.cells import cell_len

from klineage_tui.presentation.blame import blame_labels, removed_by
from klineage_tui.presentation.details import outcome, step_details
from klineage_tui.presentation.git_commands import git_commands
from klineage_tui.presentation.history import change_of, graph_line, graph_of
from klineage_tui.presentation.latencies import comparable, latencies
from klineage_tui.presentation.waterfall import waterfall_lines

EXPERT = Step(
    commit="e" * 40, parent="", number=0, subject="Open gemm", body="", direction="root", action="", locus="",
    removes=(), settings={}, proposer="", decision="opened", who="A. Curator", why="", gate="", compile="",
    correctness="", profile="", trust="", platform="", kernel="", effect="", ratio=None,
    when=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
)  # fmt: skip


def step(number: int, action: str, before: float, after: float, clock: str = "cuda-event, paper") -> Step:
    ratio = after / before
    effect = "slower" if ratio > 1 else "faster"
    return replace(
        EXPERT,
        commit=f"{number}" * 40,
        parent=f"{number - 1}" * 40 if number > 1 else EXPERT.commit,
        number=number,
        subject=f"Remove {action}",
        direction="backward",
        action=action,
        locus="kernel.py::k",
        removes=(Feature("kernel.py::k", action),),
        decision="accepted",
        gate="pass; policy 1",
        profile=f"[1, 2] {after} ms of {before} ms ({clock})",
        effect=effect,
        ratio=ratio,
        trust="measured-gpu",
    )


WALK = (EXPERT, step(1, "pipeline", 0.2, 0.4), step(2, "tiling", 0.41, 20.0))
FAILED = replace(
    step(2, "mma", 0.4, 0.4),
    commit="f" * 40,
    decision="rejected",
    gate="fail; policy 1",
    profile="",
    ratio=None,
)


def graph_text(cells: int = 60) -> list[str]:
    graph = graph_of(WALK, WALK, [FAILED])
    return [graph_line(graph, row, cells).text for row in range(len(graph.rows))]


def test_the_graph_of_a_walk() -> None:
    lines = graph_text()
    assert [line.split()[:3] for line in lines] == [
        ["○", "0", "expert"],
        ["│", "-", "pipeline"],
        ["○", "1", "0.400"],
        ["├─", "x", "mma"],
        ["│", "-", "tiling"],
        ["●", "2", "here"],
    ]
    assert "0.200 ms" in lines[0]  # the baseline of the step after it
    assert "2.00x slower" in lines[1]
    assert lines[3].endswith("FAIL")


@pytest.mark.parametrize("cells", [12, 30, 34, 60, 120])
def test_no_row_is_wider_than_the_pane(cells: int) -> None:
    assert max(cell_len(line) for line in graph_text(cells)) <= max(cells, 30)


def test_a_large_graph_is_not_drawn_before_it_is_seen() -> None:
    steps = [replace(WALK[1], commit=f"{n:040x}", number=n) for n in range(5_000)]
    graph = graph_of(steps, steps, [])
    assert len(graph.rows) == 9_999
    assert graph.row_of(f"{4_999:040x}") == 9_998


def test_times_of_different_clocks_share_no_axis() -> None:
    other = step(3, "unroll", 1.0, 2.0, "clock_monotonic, small")
    found = latencies([*WALK, other])
    assert found[other.commit].clock == "clock_monotonic, small"
    times, clock = comparable(found)
    assert clock == "cuda-event, paper"
    assert other.commit not in times
    row = next(line.text for line in waterfall_lines([*WALK, other], 100) if "unroll" in line.text)
    assert "2.00 ms" in row
    assert "█" not in row


def test_the_waterfall_says_its_scale() -> None:
    lines = [line.text for line in waterfall_lines(WALK, 100)]
    assert "logarithmic" in lines[0]
    assert [line.count("█") for line in lines[2:]] == sorted(line.count("█") for line in lines[2:])
    assert "linear" in waterfall_lines(WALK[:2], 100)[0].text


def test_a_neutral_step_shows_no_gain() -> None:
    times = "{} ms of {} ms (cuda-event, paper)"
    steps = [
        EXPERT,
        *(
            replace(WALK[1], commit=effect, effect=effect, ratio=0.92, profile=times.format(after, before))
            for effect, after, before in (("neutral", 5.5, 6.0), ("faster", 1.0, 5.5))
        ),
    ]
    gains = [line.text.count("░") for line in waterfall_lines(steps, 100)]
    assert gains[-2] == 0
    assert gains[-1] > 0


def test_a_profile_without_a_number_is_said_to_have_none() -> None:
    noisy = replace(WALK[1], profile="too noisy for a number: rounds differ by 1.40x", effect="", ratio=None)
    assert change_of(noisy) == "no number"
    assert change_of(EXPERT) == ""
    assert any(
        line.startswith("profile") and "too noisy for a number" in line for line in step_details(noisy)
    )
    assert outcome(noisy) == noisy.profile
    assert outcome(WALK[1]).startswith("SLOWER  2.00x [1, 2]")


def test_a_time_stands_after_the_one_that_it_is_compared_with() -> None:
    """As the gate shows it: the state before, then this one."""
    timed = replace(WALK[1], profile="[1.75, 1.79] 0.342 ms of 0.193 ms (cuda-event, paper)", ratio=1.77)
    assert outcome(timed).startswith("SLOWER  1.77x [1.75, 1.79] 0.193 → 0.342 ms (cuda-event, paper)")


def test_counts_are_never_times() -> None:
    counted = replace(WALK[1], profile="counts, not time: bytes 2.00x", effect="more-work", ratio=None)
    assert latencies([EXPERT, counted]) == {}
    text = "\n".join(line.text for line in waterfall_lines([EXPERT, counted], 100))
    assert "not time" in text
    assert "█" not in text
    assert any("MORE WORK  counts, not time: bytes 2.00x" in line for line in step_details(counted))


def test_reasons_are_safe_and_complete() -> None:
    hostile = replace(WALK[1], why="because \x1b]0;x\x07", body="one\n\ntwo \u202e", subject="Remove\x9b")
    lines = step_details(hostile, 60)
    text = "\n".join(lines)
    assert "because ␛]0;x␇" in text
    assert "‹202e›" in text
    assert "‹9b›" in lines[0]
    assert "accepted by A. Curator, 2026-01-02 03:04 UTC" in text
    assert any("PASS" in line for line in lines)
    assert max(map(cell_len, lines)) <= 60


def test_the_step_that_took_each_line_away() -> None:
    first = [Op("equal", 0, 1, 0, 1), Op("delete", 1, 2, 1, 1), Op("equal", 2, 4, 1, 3)]
    second = [Op("equal", 0, 1, 0, 1), Op("replace", 1, 2, 1, 4), Op("equal", 2, 3, 4, 5)]
    found = removed_by([first, second], 4)
    assert found == [None, 1, 2, None]
    labels = blame_labels([None if index is None else WALK[index] for index in found])
    assert [text for text, _ in labels] == ["base", "1 pipeline", "2 tiling", "base"]


def test_git_commands_quote_what_a_shell_would_obey() -> None:
    pairs = git_commands("/tmp/a b;rm -rf x", "gemm", "ke'rnel.py", EXPERT, WALK[1])
    commands = [command for _, command in pairs]
    assert commands[0] == "cd '/tmp/a b;rm -rf x'"
    assert commands[1].endswith("""-- 'ke'"'"'rnel.py'""")
    assert not any("lineage/gemm" in command for command in commands)


def test_only_a_gated_state_is_said_to_have_reports() -> None:
    opened, gated = (dict(git_commands("/w", "gemm", "k.py", None, step)) for step in (EXPERT, WALK[1]))
    assert "its full gate reports" not in opened
    assert gated["its full gate reports"] == f"git notes --ref=klineage show {WALK[1].commit[:12]}"
