"""A worker that speaks the protocol and does what a file says: {"health": ..., "log": ...}."""

import json
import os
import sys
import time
from pathlib import Path

plan = Path(sys.argv[1])


def note(word):
    with plan.with_name(plan.name + ".log").open("a") as file:
        file.write(word + " " + os.environ.get("CUDA_VISIBLE_DEVICES", "-") + "\n")


def emit(**message):
    print(json.dumps(message), flush=True)


note("start")
time.sleep(json.loads(plan.read_text()).get("start", 0))
emit(hello=1, kind="gpu", pid=os.getpid(), versions={"python": "3"}, home="")
for line in sys.stdin:
    job = json.loads(line)
    note(job["op"])
    said = json.loads(plan.read_text())
    if job["op"] == "health":
        result = said["health"]
    else:
        while "hold" in job and not Path(job["hold"]).exists():
            time.sleep(0.01)
        result = {**job["say"], "device": os.environ.get("CUDA_VISIBLE_DEVICES", "-")}
    emit(id=job["id"], result=result)
