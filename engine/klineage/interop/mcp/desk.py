"""What the tools of the server share: the libraries with their index, the workspace, and how a kernel is named."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from klineage.errors import KlineageError
from klineage.kernel import Kernel
from klineage.lineage import Workspace
from klineage.skill.card import Card, takes_its_place
from klineage.skill.library import Library
from klineage.skill.retrieval.index import Index, index_of, together
from klineage.skill.retrieval.index_file import open_index, source_of
from klineage.skill.retrieval.target import Target, is_path, named_target, target_of
from klineage.walk import Walk
from klineage.walk.opening import default_platform
from klineage.walk.reading import SUFFIXES, kernel_of, read_kernel, surface_of
from klineage.workload import Workload, load


@dataclass(frozen=True)
class Named:
    """A kernel as an agent names it: a file (absolute, or in the workspace), or its text with the language."""

    path: str = ""
    source: str = ""
    surface: str = ""
    entry: str = ""

    def __bool__(self) -> bool:
        return bool(self.path or self.source)


class Desk:
    """Opened once for a server; every method may be called from any thread.

    workspace: the folder that relative paths mean; its lineages are served where it is a git repository.
    places: the libraries, the first counting where two have a card.
    """

    def __init__(self, workspace: Path, places: Sequence[Path]) -> None:
        self.workspace = workspace
        self.libraries = tuple(Library.open(place) for place in places)
        self._seen: dict[str, str] = {}
        self._opened: dict[str, Index] = {}  # in the order of the libraries
        self._index: Index = index_of(())
        self._guard = threading.Lock()

    def close(self) -> None:
        """End the background git processes."""
        for library in self.libraries:
            library.close()

    def index(self) -> Index:
        """The index of all libraries, up to date with their files."""
        with self._guard:
            changed = False
            for source in map(source_of, self.libraries):
                if self._seen.get(source.place) != source.state:
                    self._opened[source.place] = open_index(source).index
                    self._seen[source.place] = source.state
                    changed = True
            if changed:
                self._index = functools.reduce(together, self._opened.values())
            return self._index

    def card(self, card_id: str) -> Card:
        """The card that ``retrieve`` serves. Raises KlineageError with what there is of a similar name."""
        found = [library.get(card_id) for library in self.libraries if card_id in library.stamps()]
        if found:
            return functools.reduce(lambda a, b: b if takes_its_place(a.status, b.status) else a, found)
        from difflib import get_close_matches

        near = get_close_matches(card_id, self.index().ids, n=3)
        said = f"; did you mean {' or '.join(near)}?" if near else "; retrieve shows the cards that there are"
        raise KlineageError(f"there is no card {card_id!r}{said}")

    def opened(self) -> Workspace:
        """The workspace. Raises KlineageError where there is none."""
        return Workspace.open(self.workspace)

    def kernel(self, named: Named, workload: Workload) -> Kernel:
        """Reads the kernel that was named; nothing is run. Raises KlineageError with what is missing."""
        if bool(named.path) == bool(named.source):
            raise KlineageError(
                "name a kernel by kernel_path, or give its text as kernel_source with its surface: one of them"
            )
        if named.path:
            return read_kernel(
                self.workspace / named.path,
                workload,
                surface=named.surface or None,
                entry=named.entry or None,
            )
        surface = surface_of("", named.surface) if named.surface else None
        if surface is None:
            raise KlineageError("kernel_source needs its surface: triton, c or cuda")
        suffix = next(suffix for suffix, known in SUFFIXES.items() if known == surface)
        source = named.source.encode("utf-8", "surrogatepass")
        return kernel_of(f"kernel{suffix}", source, workload, surface=surface, entry=named.entry or None)

    def workload(self, name: str) -> Workload:
        """A shipped workload by name, or one of a file (absolute, or in the workspace)."""
        inside = self.workspace / name
        return load(str(inside) if inside.exists() and name else name)

    def target(
        self,
        named: Named,
        workload: str,
        platform: str,
        prior: Sequence[str] | None,
        action: str,
        lineage: str = "",
    ) -> Target:
        """What cards are asked of: a kernel, the present state of a lineage, or as much as was said."""
        if lineage:
            return self._of_lineage(lineage, platform, prior or (), action)
        if not named:
            name = self.workload(workload).name if is_path(workload) else workload
            return named_target(name, named.surface, platform, prior, action)
        if not workload:
            raise KlineageError(
                "say what the kernel computes with workload: the name of a shipped one, or a path"
            )
        spec = self.workload(workload)
        kernel = self.kernel(named, spec)
        return target_of(
            kernel, spec, platform or default_platform(kernel.surface), prior=prior or (), action=action
        )

    def _of_lineage(self, lineage: str, platform: str, prior: Sequence[str], action: str) -> Target:
        workspace = self.opened()
        try:
            walk = Walk(workspace, lineage)
            state = walk.state()
            present = (*(feature.name for feature in state.features), *prior)
            return target_of(
                state.kernel, walk.workload, platform or state.meta.platform, prior=present, action=action
            )
        finally:
            workspace.close()
