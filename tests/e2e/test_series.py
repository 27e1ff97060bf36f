"""Hand-written versions as a lineage, and a forward edge that only a person makes, as one types them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

SERIES = Path(__file__).parents[1] / "series" / "row_norms"


def test_two_versions_are_imported_sealed_and_the_replayed_edge_is_mended(
    tmp_path: Path, klineage: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    where = ("-w", tmp_path / "w")
    files = [SERIES / "v2.c", SERIES / "v3.c"]
    told = klineage("import-series", "--files", *files, "--naive-first", "--workload", SERIES, *where).stdout
    assert "Remove simd" in told
    sealed = klineage("seal", "row_norms-c", *where).stdout
    assert "K1 is replayed, not derived: rules: " in sealed
    assert f"klineage derive row_norms-c -w {tmp_path / 'w'} tries again" in sealed
    refused = klineage("derive", "row_norms-c", "1", "--file", SERIES / "v2.c", *where, ok=False)
    assert refused.returncode == 1 and "the edit changes nothing" in refused.stdout
    klineage("derive", "row_norms-c", "1", "--file", SERIES / "v3.c", *where)
    again = klineage("seal", "row_norms-c", *where).stdout
    assert "sealed, 1 optimization, 1 derived" in again and "tries again" not in again
