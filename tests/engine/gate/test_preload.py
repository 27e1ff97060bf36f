"""What a worker imports at its start: what goes on beside it lets Python go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from klineage.worker import on_device

WAITS = """\
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void wait_for_python(void) {
  fclose(fopen("begun", "w"));
  for (int i = 0; i < 1000; i++) {
    FILE *file = fopen("go", "r");
    if (file) { fclose(file); fclose(fopen("gone", "w")); return; }
    usleep(10000);
  }
}
"""

LINKED = """
import threading, time
from pathlib import Path
from klineage.worker import preload
thread = threading.Thread(target=preload._open_libraries)
thread.start()
while not Path("begun").exists():
    time.sleep(0.001)
Path("go").touch()  # what the library waits for
thread.join()
"""


def test_python_goes_on_while_the_linker_takes_in_a_library(tmp_path: Path) -> None:
    library = tmp_path / "torch" / "lib" / "libtorch_cpu.so"
    library.parent.mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").touch()
    (tmp_path / "waits.c").write_text(WAITS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "waits.c"], check=True)
    command = f"import sys; sys.path.insert(0, {str(tmp_path)!r}){LINKED}"
    subprocess.run([sys.executable, "-c", command], cwd=tmp_path, check=True)
    assert (tmp_path / "gone").exists()


def test_how_often_threads_take_turns_is_as_before() -> None:
    code = (
        "import sys; from klineage.worker.preload import preload; before = sys.getswitchinterval(); "
        "preload('native'); assert sys.getswitchinterval() == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_process_rehearses_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="needs klineage-tui[triton]")
    laid_out: list[object] = []
    fill = on_device.fill

    def noted(*values: Any) -> None:
        laid_out.append(values)
        fill(*values)

    monkeypatch.setattr(on_device, "fill", noted)
    on_device.rehearse.cache_clear()
    on_device.rehearse("cpu")
    on_device.rehearse("cpu")
    assert len(laid_out) == 1
