"""The first code of a trial: `python main.py JOB` in a freshly exec'd interpreter.

It takes its own folder off `sys.path` (no file of ours may shadow a user's module), reads the job and
hands over to `trial`, which is loaded under the private package name `_reprocheck_worker`. This file is
compiled at every start, because Python caches no byte code for scripts: it stays tiny.

Standard library only, and before the first subject only builtins, `sys`, `time`, `posix` and `marshal`, all of them
part of the interpreter.
"""

import sys
import time

START = time.perf_counter()


def main():
    """Run the job named on the command line; returns when the trial's record is complete."""
    import marshal
    import posix

    folder = __file__.rpartition("/")[0]
    if sys.path and sys.path[0] == folder:
        del sys.path[0]
    fd = posix.open(sys.argv[1], posix.O_RDONLY | getattr(posix, "O_CLOEXEC", 0))
    chunks = []
    while True:
        chunk = posix.read(fd, 1 << 20)
        if not chunk:
            break
        chunks.append(chunk)
    posix.close(fd)
    job = marshal.loads(b"".join(chunks))  # noqa: S302 - written a moment ago by the process that started us

    package = type(sys)("_reprocheck_worker")
    package.__path__ = [folder]
    sys.modules["_reprocheck_worker"] = package
    __import__("_reprocheck_worker.trial")
    sys.modules["_reprocheck_worker.trial"].run(job, START)


# Guarded: a workload that starts processes by `spawn` imports this file again as `__mp_main__`.
if __name__ == "__main__":
    main()
