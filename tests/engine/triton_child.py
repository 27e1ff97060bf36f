"""Run functions of a test file in forked children of one process that has imported torch and triton.

The interpreter and the compiler cannot share a process, and neither may touch pytest's own.
Reads {"path", "function", "arguments"} as JSON lines, answers {"error": traceback or null}.
"""

import json
import os
import runpy
import sys
import traceback


def run(request):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(2, 1)
        error = None
        try:
            runpy.run_path(request["path"])[request["function"]](*request["arguments"])
        except BaseException:
            error = traceback.format_exc()
        with os.fdopen(write, "w") as pipe:
            json.dump({"error": error}, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return answer or json.dumps({"error": f"the child ended with status {status}"})


def main():
    import torch  # noqa: F401 - children share these pages
    import triton  # noqa: F401

    for line in sys.stdin:
        print(run(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
