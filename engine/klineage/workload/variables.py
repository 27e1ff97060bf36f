"""Which constants of a problem become the dimensions of a workload, and how they get other values."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from klineage.workload.constants import Constants
from klineage.workload.sizes import Given

_NONE = "given"  # a problem without a constant has one size, and a dimension that stands for it
_LARGEST = 1 << 40


class Variables:
    """Positive integers at the top of a file, and those inside of plain tuples, as named dimensions.

    drawn, tied: names of constants that come from no others. dims: name to extent, as the file has it.
    """

    given: Given

    def __init__(self, constants: Constants, drawn: list[str], tied: list[str]) -> None:
        self.constants = constants
        self.dims: dict[str, int] = {}
        self._places: dict[str, dict[int, str]] = {}  # of a tuple: place to dimension
        self.free = tuple(d for name in drawn for d in self._add(name))
        self.tied = tuple(d for name in tied for d in self._add(name))
        if not self.dims:
            self.dims[_NONE] = 1

    def _add(self, name: str) -> list[str]:
        value = self.constants.values[name]
        if _extent(value):
            self.dims[name] = value
            return [name]
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            return []
        self._places[name] = {i: f"{name}_{i}" for i, extent in enumerate(value) if _extent(extent)}
        self.dims.update({dim: value[i] for i, dim in self._places[name].items()})
        return list(self._places[name].values())

    def values(self, dims: Mapping[str, int]) -> dict[str, Any]:
        """The constants for these dimensions."""
        whole: dict[str, Any] = {n: extent for n, extent in dims.items() if n in self.constants.values}
        for name, places in self._places.items():
            before = self.constants.values[name]
            whole[name] = tuple(dims[places[i]] if i in places else extent for i, extent in enumerate(before))
        return whole

    @property
    def resize(self) -> str:
        """A function of the workload that gives its constants the values of one size."""
        lines = [
            f"\n\ndef _resize({', '.join(self.dims)}):",
            '    """Give the constants of the problem the values of one size."""',
        ]
        direct = [f"{n}={n}" for n in self.dims if n in self.constants.values]
        for name, places in self._places.items():
            before = self.constants.values[name]
            inside = ", ".join(places.get(i, repr(extent)) for i, extent in enumerate(before))
            direct.append(f"{name}=({inside},)")
        if direct:
            lines.append(f"    globals().update({', '.join(direct)})")
        for constant in self.constants.derived({*self.dims, *self._places}):
            lines.append(f"    globals().update({constant.name}={ast.unparse(constant.node)})")
        return "\n".join(lines) + "\n"


def _extent(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST
