"""The table of kernels that must be refused (the gauntlet) and of those that must pass (the jury).

Every file says on its first line what it is::

    # gauntlet: product | 4 | fail static host_compute | torch.mm under another name
    # jury: product | block pointers

workload, places in the catalogue of known cheats ("own" for one of ours), verdict and stage and reason
(several where either is right), and a title. A second line ``# on triton-gpu: ...`` says what a GPU
must say instead where that differs, or ``not run: why``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from klineage.errors import KlineageError
from klineage.kernel import Kernel, Surface
from klineage.surface.dispatch import autotune_configs, entry_of, flags_of
from klineage.workload import Workload, load

HERE = Path(__file__).parent
CHEATS, HONEST = HERE / "cheats", HERE.parent / "jury" / "honest"
SUFFIXES: dict[str, Surface] = {".py": "triton", ".c": "c", ".cu": "cuda"}
HERE_SURFACES = ("triton", "c", "cuda")  # "cuda" without a GPU: static trust
GPU_SURFACES = ("triton-gpu", "cuda-gpu")
ENTRY = "entry"

_FIRST = re.compile(r"^(?:#|//) (?P<kind>gauntlet|jury): (?P<rest>.*)$")
_MORE = re.compile(r"^(?:#|//) on (?P<surface>[\w-]+): (?P<rest>.*)$")


@dataclass(frozen=True)
class Expected:
    """What a gate must say. ``skip`` says why a surface cannot judge the case at all."""

    verdict: str = "pass"
    stage: str = ""
    reasons: tuple[str, ...] = ()
    skip: str = ""

    def __str__(self) -> str:
        return (
            self.skip and f"not run: {self.skip}"
        ) or f"{self.verdict} {self.stage} {' or '.join(self.reasons)}"


UNRUN = Expected("unsupported", "correctness", ("no_gpu",))  # CUDA that was compiled, and ran nowhere


@dataclass(frozen=True)
class Case:
    """One kernel file on one surface."""

    path: Path
    surface: str  # how it runs: triton, c, cuda, triton-gpu, cuda-gpu
    workload: str
    catalogue: tuple[str, ...]
    title: str
    expected: Expected

    @property
    def id(self) -> str:
        return f"{self.surface}-{self.path.stem}"

    @property
    def language(self) -> Surface:
        return SUFFIXES[self.path.suffix]

    @property
    def platform(self) -> str:
        return "cpu-native" if self.language == "c" else "nvidia-sm90"

    def _entry(self, filename: str, source: bytes) -> str:
        """CUDA names its kernels by their launches, the other languages by a function."""
        if self.language != "cuda":
            return ENTRY
        try:
            return entry_of(self.language, filename, source, workload(self.workload))
        except KlineageError:
            return ENTRY

    def kernel(self) -> Kernel:
        source = self.path.read_bytes()
        filename = f"kernel{self.path.suffix}"
        bare = Kernel(self.language, filename, self._entry(filename, source), source)
        try:
            configs = autotune_configs(bare)
        except (ValueError, RecursionError):
            configs = ()
        return Kernel(
            bare.surface,
            bare.filename,
            bare.entry,
            source,
            configs[0] if configs else (),
            flags_of(self.language, source),
        )


@cache
def workload(name: str) -> Workload:
    """A workload of the gauntlet, or a shipped one."""
    own = HERE / "workloads" / name
    return load(own if own.is_dir() else name)


def _expected(text: str) -> Expected:
    text = text.strip()
    if text.startswith("not run: "):
        return Expected(skip=text.removeprefix("not run: "))
    verdict, stage, *reasons = text.split()
    return Expected(verdict, stage, tuple(r for r in reasons if r != "or"))


def read(path: Path) -> list[Case]:
    """The cases of one file: one here, and one on a GPU where a GPU can judge its surface."""
    first, *others = path.read_text(encoding="utf-8").splitlines()
    found = _FIRST.match(first)
    if found is None:
        raise ValueError(f"{path}: the first line does not say what the file is")
    fields = [part.strip() for part in found["rest"].split(" | ")]
    if found["kind"] == "gauntlet":
        name, ids, outcome, title = fields
        catalogue, expected = tuple(ids.replace(",", " ").split()), _expected(outcome)
    else:
        (name, title), catalogue, expected = fields, (), Expected()
    language = SUFFIXES[path.suffix]
    wanted: dict[str, Expected] = {language: expected}
    if language == "cuda" and (expected.verdict == "pass" or expected.stage in ("correctness", "profile")):
        wanted[language] = UNRUN
    if language != "c":
        wanted[f"{language}-gpu"] = expected
    for line in others[:3]:
        more = _MORE.match(line)
        if more:
            wanted[more["surface"]] = _expected(more["rest"])
    return [Case(path, surface, name, catalogue, title, e) for surface, e in wanted.items()]


def cheats() -> list[Case]:
    """Every case of the gauntlet, by surface and file."""
    return _listed(CHEATS)


def honest() -> list[Case]:
    """Every case of the jury, by surface and file."""
    return _listed(HONEST)


def _listed(folder: Path) -> list[Case]:
    files = sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES)
    return [case for path in files for case in read(path)]
