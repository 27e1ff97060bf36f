"""How the start of a worker can go wrong or be broken off: it leaves no process and no folder, and says what was wrong."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from klineage.executor import Cancelled, LocalExecutor
from klineage.executor.parent import Parent
from klineage.worker import home

from .test_ends import eventually

ENGINE = Path(home.__file__).parents[2]
#: Nothing but the kernel ends it: it hangs, as it were, in C.
DEAF = """
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
time.sleep(600)
"""
#: An exception that a signal's handler raises there would be lost.
IN_A_CALLBACK = """
import os, signal, time, weakref
class Thing: pass
thing = Thing()
kept = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGTERM))
del thing
time.sleep(600)
"""
HASTY = """
import signal
from klineage.worker import starting
from klineage.worker.__main__ import main
starting.TELL_SECONDS, starting.START_SECONDS = 1, 2
main()
"""

Make = Callable[..., LocalExecutor]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "temporary").mkdir()
    return tmp_path / "temporary"


@pytest.fixture
def broken(tmp_path: Path, place: Path) -> Iterator[Make]:
    """An executor whose workers find this text as a package: by default triton, which they import before torch."""
    made: list[LocalExecutor] = []

    def make(text: str, command: list[str] | None = None, name: str = "triton") -> LocalExecutor:
        package = tmp_path / "packages" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(text)
        path = os.pathsep.join((str(package.parent), str(ENGINE)))
        environment = {**os.environ, "TMPDIR": str(place), "PYTHONPATH": path}
        made.append(LocalExecutor(environment, command))
        return made[-1]

    yield make
    for executor in made:
        executor.close()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("triton", "raise ImportError('libx.so: cannot open\\nmore')", "ImportError: libx.so: cannot open"),
        ("triton", "import sys; sys.exit(3)", "SystemExit: 3"),
        ("numpy", "raise OSError('not a library')", "OSError: not a library"),
        ("numpy", "import cannot_be_found", "ModuleNotFoundError: No module named 'cannot_be_found'"),
    ],
)
def test_a_package_that_cannot_be_imported_is_named(
    broken: Make, place: Path, name: str, text: str, said: str
) -> None:
    answer = broken(text, name=name).submit("compiler", {"op": "layers"})
    assert (answer["verdict"], answer["reason"]) == ("error", "broken_package")
    assert answer["summary"] == (
        f"{name} is installed for {sys.executable} but cannot be imported ({said}); install it anew"
    )
    assert not any(place.iterdir())


def test_a_signal_to_end_is_heard_wherever_the_import_is(broken: Make, place: Path) -> None:
    answer = broken(IN_A_CALLBACK).submit("compiler", {"op": "layers"})
    assert (answer["reason"], answer["log"]) == ("worker", "")
    assert not any(place.iterdir())


def test_a_start_that_is_cancelled_leaves_nothing_though_it_hears_nothing(broken: Make, place: Path) -> None:
    executor, cancel, ends = broken(DEAF), threading.Event(), []

    def wait() -> None:
        with pytest.raises(Cancelled):
            executor.versions("compiler", cancel)
        ends.append(list(place.iterdir()))

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    assert eventually(lambda: any(place.glob("klineage-server-*/lock")))
    cancel.set()
    waiting.join(120)
    assert ends == [[]]


def test_an_import_that_hangs_ends_and_shows_where(broken: Make) -> None:
    executor = broken(DEAF, [sys.executable, "-c", HASTY])
    answer = executor.submit("compiler", {"op": "layers"})
    assert answer["reason"] == "worker"
    assert "exit -14" in answer["summary"]
    assert "most recent call first" in answer["log"]


class Closing(LocalExecutor):
    """It is closed at the very moment at which its worker is there: before it has said hello, or after."""

    def __init__(self, moment: str) -> None:
        super().__init__()
        self.moment, self.launched = moment, 0

    def _launch(self, kind: str, device: str) -> Parent:
        parent = super()._launch(kind, device)
        self.launched = parent.pid
        greet = parent.greet

        def then_close(cancel: threading.Event | None) -> None:
            greet(cancel)
            self.close()

        if self.moment == "launched":
            self.close()
        else:
            parent.greet = then_close  # type: ignore[method-assign]
        return parent


@pytest.mark.parametrize("moment", ["launched", "greeted"])
def test_no_worker_outlives_a_close_in_the_middle_of_its_start(moment: str) -> None:
    executor = Closing(moment)
    assert executor.versions("native") == {}
    assert executor.pids() == ()
    assert not Path(f"/proc/{executor.launched}").exists()


def test_a_job_that_runs_when_its_executor_is_closed_has_an_answer(tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    plan.write_text("{}")
    worker = str(Path(__file__).with_name("fake_worker.py"))
    executor = LocalExecutor(command=[sys.executable, worker, str(plan)])
    answers = []
    job = {"op": "say", "hold": str(tmp_path / "never"), "say": {}}
    running = threading.Thread(target=lambda: answers.append(executor.submit("native", job)), daemon=True)
    running.start()
    log = tmp_path / "plan.log"
    assert eventually(lambda: log.exists() and "say" in log.read_text())
    executor.close()
    running.join(120)
    assert [(answer["verdict"], answer["reason"]) for answer in answers] == [("error", "worker")]
    assert executor.pids() == ()


def test_a_folder_is_swept_when_nobody_holds_it_and_not_while_its_server_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandoned, begun, stale = (tmp_path / f"klineage-server-{name}" for name in ("one", "two", "three"))
    for folder in (abandoned, begun, stale):
        folder.mkdir()
    (abandoned / "lock").touch()
    (begun / "unlocked").touch()  # its lock comes into sight when it is held
    os.utime(stale, (0, 0))
    home.sweep(tmp_path)
    assert list(tmp_path.iterdir()) == [begun]
