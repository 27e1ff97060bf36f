"""A small workload, kernels for it, and one set of warm workers with a cache of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from klineage.executor import LocalExecutor
from klineage.gate import GateEvent, GateRequest, Policy, Report, gate
from klineage.kernel import Kernel
from klineage.workload import Workload, load, parse

HERE = Path(__file__).parent
QUICK = Policy(
    profile_seconds=0.05, most_profile_seconds=0.5
)  # and all the time that a busy machine may need

Gate = Callable[..., Report]
MakeC = Callable[..., Kernel]


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(home))
        yield home


@pytest.fixture(scope="session")
def executor(cache_home: Path) -> Iterator[LocalExecutor]:
    workers = LocalExecutor()
    yield workers
    workers.close()


@pytest.fixture(scope="session")
def rows() -> Workload:
    return load(HERE)


@pytest.fixture
def changed(rows: Workload) -> Callable[[str, str], Workload]:
    """The workload with one text replaced by another."""

    def change(old: str, new: str) -> Workload:
        source = rows.source.decode()
        assert old in source
        return parse(source.replace(old, new).encode(), name=rows.name, path=Path("mine/workload.py"))

    return change


@pytest.fixture
def c() -> MakeC:
    """A C kernel from its body; the body sees x, bias, y, rows, columns, alpha."""

    def make(body: str = "", *, before: str = "", flags: tuple[str, ...] = ()) -> Kernel:
        text = (
            "#include <stdint.h>\n#include <stdlib.h>\n#include <stdio.h>\n" + before + "\n"
            "void rows_kernel(const float *x, const float *bias, float *y,\n"
            "                 int64_t rows, int64_t columns, float alpha) {\n  " + body + "\n"
            "  for (int64_t i = 0; i < rows; i++)\n"
            "    for (int64_t j = 0; j < columns; j++)\n"
            "      y[i * columns + j] = alpha * x[i * columns + j] + bias[j];\n}\n"
        )
        return Kernel("c", "kernel.c", "rows_kernel", text.encode(), flags=flags)

    return make


@pytest.fixture
def judge(executor: LocalExecutor, rows: Workload) -> Gate:
    """Gate a kernel freshly under a quick policy."""

    def run(
        kernel: Kernel,
        workload: Workload = rows,
        *,
        baseline: Kernel | None = None,
        policy: Policy = QUICK,
        events: list[GateEvent] | None = None,
        platform: str = "cpu-native",
    ) -> Report:
        request = GateRequest(kernel, workload, platform, baseline)
        on_event = events.append if events is not None else None
        return gate(request, on_event, fresh=True, policy=policy, executor=executor)

    return run
