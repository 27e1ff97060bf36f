"""The worker as one file: its modules in one program that needs Python 3.9, numpy, and for Triton torch and triton."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

import klineage

WORKER = ("errors", "platform", "worker")

_PROGRAM = '''\
# The worker of klineage {version}, made of its modules. It runs with Python 3.9 or newer, numpy, and, for
# Triton kernels, torch and triton. Nothing else is needed, and nothing is installed.
import hashlib
import importlib.abc
import importlib.util
import sys


class Modules(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds the modules of klineage in this file."""

    def find_spec(self, name, path=None, target=None):
        if name not in MODULES:
            return None
        where = "<klineage>/" + name.replace(".", "/") + ".py"
        spec = importlib.util.spec_from_loader(name, self, origin=where, is_package=self.is_package(name))
        spec.has_location = True
        return spec

    def names(self):
        return sorted(MODULES)

    def is_package(self, name):
        return MODULES[name][0]

    def get_source(self, name):
        return MODULES[name][1]

    def exec_module(self, module):
        code = compile(self.get_source(module.__name__), module.__spec__.origin, "exec", dont_inherit=True)
        exec(code, module.__dict__)


# name: (is it a package?, its source)
MODULES = {
{modules}}
sys.meta_path.insert(0, Modules())
sys.path[:] = [path for path in sys.path if path]  # a file in the current folder is no module


def program_hash():
    """64 hex digits over the modules."""
    return hashlib.sha256(repr(sorted(MODULES.items())).encode()).hexdigest()

'''

_MAIN = """
if __name__ == "__main__":
    from klineage.worker.__main__ import main

    main(source=program_hash())
"""


@functools.lru_cache(maxsize=1)
def worker_source() -> str:
    """The program: ``--kind KIND`` serves on its input and output, as ``python -m klineage.worker`` does."""
    return program(WORKER) + _MAIN


def program(parts: Iterable[str]) -> str:
    """A program that can import these modules and packages of klineage."""
    lines = "".join(f"    {name!r}: ({package}, {text!r}),\n" for name, (package, text) in _sorted(parts))
    return _PROGRAM.replace("{version}", klineage.__version__).replace("{modules}", lines)


def program_hash(parts: Iterable[str] = WORKER) -> str:
    """64 hex digits over the modules of a program, which it can find out about itself."""
    return hashlib.sha256(repr(_sorted(parts)).encode()).hexdigest()


def _sorted(parts: Iterable[str]) -> list[tuple[str, tuple[bool, str]]]:
    return sorted(_modules(parts))


def _modules(parts: Iterable[str]) -> Iterable[tuple[str, tuple[bool, str]]]:
    root = Path(klineage.__file__).parent
    yield "klineage", (True, (root / "__init__.py").read_text(encoding="utf-8"))
    for part in parts:
        if (root / f"{part}.py").is_file():
            yield f"klineage.{part}", (False, (root / f"{part}.py").read_text(encoding="utf-8"))
        for file in sorted((root / part).rglob("*.py")):
            names = file.relative_to(root).with_suffix("").parts
            package = names[-1] == "__init__"
            name = ".".join(("klineage", *(names[:-1] if package else names)))
            yield name, (package, file.read_text(encoding="utf-8"))
