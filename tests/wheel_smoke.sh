#!/bin/sh
# Builds the wheel, installs it in a clean environment, and uses it there. Usage: wheel_smoke.sh PYTHON
set -eu
python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m build --quiet --wheel --outdir "$work/dist" "$root"
"$python" -m zipfile -l "$work"/dist/*.whl > "$work/listing"
if grep -E '^(engine|experts|library|themes|tests|benchmarks|docs)/' "$work/listing"; then
    echo "the wheel puts a generic name at top level" >&2
    exit 1
fi

"$python" -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet "$work"/dist/*.whl
cd "$work" # away from the checkout: only what is installed counts
"$work/env/bin/klineage" --version
"$work/env/bin/klineage" doctor
"$work/env/bin/klineage" demo "$work/demo" --no-app --json > "$work/demo.json"
"$work/env/bin/klineage" walk add_rmsnorm-c --workspace "$work/demo" --max-steps 1 --json > "$work/walk.json"
"$work/env/bin/python" - "$work" <<'PY'
import json, pathlib, sys
work = pathlib.Path(sys.argv[1])
ids = {row["id"] for row in json.loads((work / "demo.json").read_text())}
assert {"gemm-triton", "gemm-c", "fmha-triton", "add_rmsnorm-triton", "add_rmsnorm-c"} <= ids, ids
steps = json.loads((work / "walk.json").read_text())
assert any(step["decision"] == "accepted" for step in steps["steps"]), steps
from klineage.resources import shipped
from klineage_tui.themes import load_themes, shipped_folder
assert "site-packages" in str(shipped("experts")), shipped("experts")
assert shipped("library").is_dir()
assert "site-packages" in str(shipped_folder()), shipped_folder()
assert len(load_themes().names()) >= 4, load_themes().names()
print("installed wheel: experts, library and themes found; one step walked")
PY
