"""Few values out of a .safetensors file: eight bytes of length, a JSON header, and the raw numbers."""

from __future__ import annotations

import json
import math
import os
import struct
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError

MOST = 4096  # values; a workload is a short text
_FORMATS = {
    "BOOL": "?", "U8": "B", "I8": "b", "I16": "h", "I32": "i", "I64": "q", "F16": "e", "F32": "f", "F64": "d",
}  # fmt: skip
_LONGEST_HEADER = 16 << 20


def read_values(path: Path, key: str, shape: list[int]) -> Any:
    """The tensor ``key`` as nested lists. Raises KlineageError when it is not there, too large or of another shape."""
    count = math.prod(shape)
    if count > MOST:
        raise KlineageError(
            f"{count:,} values lie in {path}, and a workload is one short file: at most {MOST:,} are taken into it;"
            " draw them in inputs() of a workload.py of your own"
        )
    try:
        with path.open("rb") as file:
            header, begin = _header(file, path)
            entry = header.get(key)
            if not isinstance(entry, dict):
                raise KlineageError(f"{path} has no tensor {key!r}")
            if entry.get("shape") != shape:
                raise KlineageError(f"{path} has {key} in the shape {entry.get('shape')}, not {shape}")
            code = _FORMATS.get(str(entry.get("dtype")))
            if code is None:
                raise KlineageError(
                    f"{path} has {key} in the type {entry.get('dtype')}, which is not read here"
                )
            file.seek(begin + int(entry["data_offsets"][0]))
            values = struct.unpack(f"<{count}{code}", file.read(count * struct.calcsize(code)))
    except OSError as error:
        raise KlineageError(f"{path} cannot be read: {os.strerror(error.errno or 0)}") from error
    except (struct.error, KeyError, IndexError, TypeError, ValueError) as error:
        raise KlineageError(f"{path} is no safetensors file, or damaged ({error})") from error
    return _nested(list(values), shape)


def _header(file: Any, path: Path) -> tuple[dict[str, Any], int]:
    raw = file.read(8)
    length = struct.unpack("<Q", raw)[0] if len(raw) == 8 else 0
    if not 0 < length <= _LONGEST_HEADER:
        raise KlineageError(f"{path} is no safetensors file (is it a Git LFS pointer?)")
    header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise KlineageError(f"{path} is no safetensors file: its header is no object")
    return header, 8 + length


def _nested(values: list[Any], shape: list[int]) -> Any:
    for extent in reversed(shape[1:]):
        values = [values[i : i + extent] for i in range(0, len(values), extent)]
    return values if shape else values[0]
