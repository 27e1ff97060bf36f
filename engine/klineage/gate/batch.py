"""Gates that are carried to another machine by hand, as one Python file, and their results, read back.

Every job is bound to what it is about (kernel, baseline, workload, platform, policy, a nonce) by a token that
only this user's key makes, so that a result is of a batch that was exported here, or is refused. That guards
against mistakes; whoever controls the other machine controls what it answers.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.executor.bundle import program, program_hash
from klineage.gate.policy import POLICY
from klineage.gate.record import report_from_json
from klineage.gate.reproduce import workload_word
from klineage.gate.request import GateRequest
from klineage.gate.run import prepare
from klineage.gate.verdict import Report
from klineage.kernel import Kernel

_PARTS = (
    "errors",
    "files",
    "kernel",
    "numbers",
    "resources",
    "platform",
    "workload",
    "worker",
    "executor",
    "gate",
)
_LARGEST = 256 << 20
FORMAT = 1

_MAIN = """
JOBS = [
{jobs}]

if __name__ == "__main__":
    if "--kind" in sys.argv:
        from klineage.worker.__main__ import main

        main(source=program_hash())
    else:
        from klineage.gate.batch_run import main

        sys.exit(main(JOBS, program_hash(), __file__))
"""


@dataclass(frozen=True)
class Item:
    """One gate of a batch. ``label`` is for people; ``commit`` is the step that it is about, if it is about one."""

    label: str
    request: GateRequest
    commit: str = ""


@dataclass(frozen=True)
class Result:
    """One accepted result."""

    label: str
    commit: str
    report: Report
    json: str  # the report, as it is stored


def export(items: Iterable[Item], key: bytes) -> str:
    """The batch file: a program that gates the items, with Python 3.9 or newer and what their surfaces need."""
    source = program(_PARTS)
    digest = program_hash(_PARTS)
    jobs = [_job(item, key, digest) for item in items]
    if not jobs:
        raise KlineageError("there is nothing to gate in this batch")
    text = "".join(f"    {json.dumps(job, sort_keys=True)!r},\n" for job in jobs)
    return source + _MAIN.replace("{jobs}", text)


def _job(item: Item, key: bytes, digest: str) -> dict[str, Any]:
    request = item.request
    bound = {
        "nonce": secrets.token_hex(16),
        "kernel": request.kernel.hash,
        "baseline": request.baseline.hash if request.baseline else None,
        "workload": request.workload.hash,
        "platform": request.platform,
        "policy": POLICY.name,
        "phase": request.phase,
        "program": digest,
        "commit": item.commit,
    }
    kernels = [request.kernel, *([request.baseline] if request.baseline else [])]
    return {
        "label": item.label,
        "bound": bound,
        "token": _token(bound, key),
        "kernels": [_carried(kernel, request) for kernel in kernels],
        "workload": {
            "name": request.workload.name,
            "path": workload_word(request.workload.path, request.workload.name),
            "source": base64.b64encode(request.workload.source).decode(),
        },
    }


def _carried(kernel: Kernel, request: GateRequest) -> dict[str, Any]:
    known = prepare(kernel, request.workload)
    told = {name: getattr(kernel, name) for name in ("surface", "filename", "entry", "config", "flags")}
    return {
        **told,
        "source": base64.b64encode(kernel.source).decode(),
        "static": asdict(known.static),
        "job": known.job,
    }


def _token(bound: dict[str, Any], key: bytes) -> str:
    return hmac.new(key, json.dumps(bound, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def seal(token: str, report: dict[str, Any]) -> str:
    """Over a report as it was written: an edited one has another."""
    return hashlib.sha256((token + json.dumps(report, sort_keys=True)).encode()).hexdigest()


def read_results(data: bytes, name: str, key: bytes) -> tuple[list[Result], list[str]]:
    """The results that may be believed, and a sentence for every line that may not.

    Raises KlineageError when ``data`` is no file of results at all.
    """
    if len(data) > _LARGEST:
        raise KlineageError(f"{name} has {len(data):,} bytes, more than any file of results")
    results: list[Result] = []
    refused: list[str] = []
    lines = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    for number, line in lines:
        try:
            results.append(_result(line, key))
        except KlineageError as error:
            refused.append(f"{name}:{number}: {error}")
    if not lines:
        raise KlineageError(
            f"{name} is empty; it should hold what the batch file printed: python3 FILE > RESULTS"
        )
    return results, refused


def _result(line: bytes, key: bytes) -> Result:
    found = _parsed(line)
    bound, report = found["bound"], found["report"]
    if not hmac.compare_digest(_token(bound, key), found["token"]):
        raise KlineageError("is of no batch that was exported here, or what it is bound to was edited")
    if found["program"] != bound.get("program"):
        raise KlineageError("was made by an edited batch file; export it again, and run it as it is")
    for field, word in (("kernel", "kernel"), ("baseline", "baseline"), ("workload", "workload")):
        if report.get(field) != bound.get(field):
            raise KlineageError(
                f"is of another {word}: {_short(report.get(field))}, and the batch asked for {_short(bound.get(field))}"
            )
    for field in ("platform", "policy", "phase"):
        if report.get(field) != bound.get(field):
            raise KlineageError(
                f"is for {field} {report.get(field)}, and the batch asked for {bound.get(field)}"
            )
    if found["seal"] != seal(found["token"], report):
        raise KlineageError("was edited after the run")
    if bound.get("policy") != POLICY.name:
        raise KlineageError(
            f"was gated under policy {bound.get('policy')}; this klineage gates under {POLICY.name}: export the batch again"
        )
    text = json.dumps(report, sort_keys=True)
    return Result(found["label"], str(bound.get("commit") or ""), report_from_json(text), text)


def _short(value: object) -> str:
    return str(value)[:12] if value else "none"


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("klineage-batch") != FORMAT:
        raise KlineageError("is no result of a batch of this version")
    if "refused" in found:
        raise KlineageError(f"was not gated: {found['refused']}")
    texts = all(isinstance(found.get(name), str) for name in ("label", "token", "seal", "program"))
    if not texts or not all(isinstance(found.get(name), dict) for name in ("bound", "report")):
        raise KlineageError("lacks a part of a result; was the file cut off?")
    if not found["token"].isascii():
        raise KlineageError("is of no batch that was exported here, or what it is bound to was edited")
    return found


def user_key() -> bytes:
    """This user's own key for batches, made when it is first needed. Raises KlineageError when it cannot be kept."""
    import platformdirs

    path = Path(platformdirs.user_data_dir("klineage")) / "batch.key"
    return read_key(path)


def read_key(path: Path) -> bytes:
    """The key in ``path``, made if there is none."""
    try:
        for data in _attempts(path):
            if len(data) == 32:
                return data
    except OSError as error:
        raise KlineageError(f"cannot keep the key of batches in {path}: {error.strerror}") from error
    raise KlineageError(f"{path} is damaged; remove it, and export open batches again")


def _attempts(path: Path) -> Iterator[bytes]:
    import os

    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(32))
        try:
            os.link(partial, path)  # unless another process was faster
        except FileExistsError:
            pass
        finally:
            partial.unlink()
    yield path.read_bytes()
