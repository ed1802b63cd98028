"""Trials as forks of a process that has torch loaded already: what a trial of tiny toolboxes costs then is 0.1 s.

Reads `{"job", "main", "env", "cwd", "out"}` as JSON lines and answers each with the exit status of a child that ran the
worker's own `main.py` on the job. For tests only: here nobody asks about the import of torch itself.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

import torch
import torch._dynamo  # optimisers load it
import torch.utils._python_dispatch

__all__: list[str] = []


def serve() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = run(request)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(ended), flush=True)


def run(request: dict[str, str]) -> int:
    for number in (1, 2):
        file = os.open(f"{request['out']}.{number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(json.loads(request["env"]))
    main = Path(request["main"])
    sys.argv = [request["main"], request["job"]]
    sys.path = [str(main.parent), *(entry for entry in sys.path if entry not in ("", str(Path(__file__).parent)))]
    namespace = {"__file__": request["main"], "__name__": "__worker__"}
    exec(compile(main.read_text(encoding="utf-8"), request["main"], "exec"), namespace)
    try:
        namespace["main"]()  # type: ignore[operator]
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    return 0


if __name__ == "__main__":
    serve()
