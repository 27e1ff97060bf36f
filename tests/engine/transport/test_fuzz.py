"""Whatever comes from outside is either what it should be or refused in the way that its reader promises."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from klineage.errors import KlineageError
from klineage.executor import Died, LocalExecutor
from klineage.executor.parent import _checked, parse_line
from klineage.gate import GateRequest, Report, Verdict, cache, gate
from klineage.gate.batch import read_results
from klineage.gate.batch_run import _request
from klineage.kernel import Kernel
from klineage.lineage.message import MessageError, parse_step
from klineage.lineage.model import Step
from klineage.platform import Machine, machine_from
from klineage.workload import Workload, parse

from .conftest import ROWS

KEY = bytes(range(32))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
DEEP = b"[" * 100_000
quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(st.binary(max_size=200) | json_values.map(lambda v: json.dumps(v).encode()) | st.just(DEEP))
def test_a_workers_line(line: bytes) -> None:
    try:
        assert isinstance(parse_line(line), dict)
    except Died as died:
        assert str(died)


@quick
@given(json_values)
def test_a_workers_answer(value: Any) -> None:
    try:
        answer = _checked(value)
    except Died:
        return
    assert isinstance(answer["summary"], str)


class Recorder(LocalExecutor):
    """Keeps every answer."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[tuple[str, dict[str, Any]]] = []

    def submit(self, kind: str, job: dict[str, Any], *more: Any, **named: Any) -> dict[str, Any]:
        answer = super().submit(kind, job, *more, **named)
        self.answers.append((job["op"], answer))
        return copy.deepcopy(answer)


class Replayer(LocalExecutor):
    """Answers as recorded, but for one answer that was tampered with."""

    def __init__(
        self, answers: list[tuple[str, dict[str, Any]]], number: int, path: list[Any], value: Any
    ) -> None:
        super().__init__()
        self.answers = copy.deepcopy(answers)
        self.asked = 0
        _, target = self.answers[number]
        for name in path[:-1]:
            target = target[name]
        if value is DROPPED:
            del target[path[-1]]
        else:
            target[path[-1]] = value

    def submit(self, kind: str, job: dict[str, Any], *more: Any, **named: Any) -> dict[str, Any]:
        op, answer = self.answers[self.asked]
        assert op == job["op"]
        self.asked += 1
        try:
            return _checked(answer)
        except Died as died:
            return self._failure(kind, died, "")


DROPPED = object()


def places(value: Any, path: list[Any]) -> Iterator[list[Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield [*path, name]
        if len(path) < 3:
            yield from places(inner, [*path, name])


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Kernel, Workload, list[tuple[str, dict[str, Any]]]]]:
    from klineage.workload import load

    kernel = Kernel("c", "kernel.c", "rows_kernel", Path(__file__).with_name("rows.c").read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KLINEAGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        workers = Recorder()
        rows = load(ROWS)
        assert (
            gate(GateRequest(kernel, rows, "cpu-native"), executor=workers, fresh=True).verdict
            is Verdict.PASS
        )
        first = len(workers.answers)
        gate(
            GateRequest(kernel, rows, "cpu-native"), executor=workers, fresh=True
        )  # what is recalled is recalled now
        workers.close()
        yield kernel, rows, workers.answers[first:]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_tampered_answer_is_a_verdict(recorded: Any, data: st.DataObject) -> None:
    kernel, rows, answers = recorded
    number = data.draw(st.integers(0, len(answers) - 1))
    path = data.draw(st.sampled_from(list(places(answers[number][1], []))))
    value = data.draw(st.just(DROPPED) | json_values)
    workers = Replayer(answers, number, path, value)
    report = gate(GateRequest(kernel, rows, "cpu-native"), executor=workers, fresh=True, keep=False)
    assert isinstance(report, Report)
    assert all(isinstance(s.verdict, Verdict) and isinstance(s.summary, str) for s in report.stages)


@quick
@given(
    st.binary(max_size=300)
    | st.lists(json_values, max_size=3).map(lambda v: "\n".join(map(json.dumps, v)).encode())
    | st.just(DEEP)
)
def test_a_file_of_results(data: bytes) -> None:
    try:
        results, refused = read_results(data, "r", KEY)
    except KlineageError:
        return
    assert results == []
    assert all(sentence.startswith("r:") for sentence in refused)


@quick
@given(
    st.dictionaries(st.sampled_from(["label", "bound", "token", "report", "seal", "program"]), json_values)
)
def test_a_forged_result(parts: dict[str, Any]) -> None:
    results, refused = read_results(json.dumps({"klineage-batch": 1, **parts}).encode(), "r", KEY)
    assert (results, len(refused)) == ([], 1)


@quick
@given(st.dictionaries(st.sampled_from(["bound", "kernels", "workload", "label"]), json_values))
def test_a_forged_job(job: dict[str, Any]) -> None:
    with pytest.raises((KlineageError, KeyError, ValueError, TypeError, AttributeError, IndexError)):
        _request(job)


@quick
@given(data=st.binary(max_size=200) | json_values.map(lambda v: json.dumps(v).encode()) | st.just(DEEP))
def test_a_cache_entry(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "_read", lambda kind, name: data)
        report, counts, error, oracle = (
            cache.load_report("x"), cache.load_counts("x"), cache.load_error("x"), cache.load_oracle("x"),
        )  # fmt: skip
    assert report is None or isinstance(report, Report)
    assert counts is None or all(isinstance(v, int) for v in counts.values())
    assert error is None or isinstance(error, float)
    assert oracle is None or isinstance(oracle, dict)


SOURCE = (ROWS / "workload.py").read_text()


@quick
@given(
    st.binary(max_size=200)
    | st.tuples(st.integers(0, len(SOURCE)), st.integers(0, 40), st.text(max_size=12)).map(
        lambda t: (SOURCE[: t[0]] + t[2] + SOURCE[t[0] + t[1] :]).encode("utf-8", "surrogatepass")
    )
)
def test_a_workload_file(source: bytes) -> None:
    try:
        found = parse(source, name="w", path=Path("w/workload.py"))
    except KlineageError as error:
        assert str(error).startswith("w/workload.py")
    else:
        assert isinstance(found, Workload)


TRAILERS = (
    "Remove a thing\n\nBecause.\n\nLineage-Id: gemm\nLineage-Step: 1\nLineage-Direction: backward\nLineage-Decision: accepted\n"
    "Lineage-Removes: a::b / c\nLineage-Profile: 1.2 [1.1, 1.3] 1 ms of 2 ms (clock)\nLineage-Schema: 1\n"
)


@quick
@given(
    st.text(max_size=200)
    | st.tuples(st.integers(0, len(TRAILERS)), st.integers(0, 30), st.text(max_size=10)).map(
        lambda t: TRAILERS[: t[0]] + t[2] + TRAILERS[t[0] + t[1] :]
    ),
    st.integers(-(2**70), 2**70),
)
def test_a_commit_message(message: str, seconds: int) -> None:
    try:
        assert isinstance(parse_step("c" * 40, "", "a", seconds, message), Step)
    except MessageError as error:
        assert str(error)


@quick
@given(
    json_values
    | st.fixed_dictionaries(
        {"gpus": json_values, "gcc": json_values, "clang": json_values, "nvcc": json_values}
    )
)
def test_a_machine(value: Any) -> None:
    try:
        assert isinstance(machine_from(value), Machine)
    except ValueError as error:
        assert "not a description" in str(error)


OPERATIONS = ("correctness", "compile_c", "time_c", "sanitize_c", "count_c", "oracle", "nothing")
requests = st.fixed_dictionaries(
    {"op": st.sampled_from(OPERATIONS)},
    optional={
        "kernel": json_values,
        "cases": json_values,
        "limits": json_values,
        "workload": json_values,
        "cache": st.just(""),
    },
)


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "klineage.worker", "--kind", "native"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ),
    )  # fmt: skip
    assert process.stdin and process.stdout
    assert b"hello" in process.stdout.readline()
    yield process
    process.stdin.close()
    process.stdout.close()
    assert process.wait(120) == 0


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    line=requests.map(lambda r: json.dumps({"id": 7, **r}).encode())
    | st.binary(min_size=1, max_size=60).map(lambda b: b.replace(b"\n", b""))
)
def test_a_server_outlives_every_request(line: bytes, server: subprocess.Popen[bytes]) -> None:
    assert server.stdin and server.stdout
    server.stdin.write(line + b"\n" + b'{"id": "next", "op": "dance"}\n')
    server.stdin.flush()
    while True:
        message = json.loads(server.stdout.readline())
        if message.get("id") == "next":
            assert message["result"]["verdict"] == "error"
            return
        assert message.get("result", {"verdict": "error"})["verdict"] in ("error", "fail", "unsupported")
