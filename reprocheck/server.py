"""Checks for a process that must stay as it is: one JSON request a line on stdin, one answer a line on stdout.

A pytest process should not find numpy, or our own libraries, among its modules because a test asked for a check. The
plugin therefore starts this once, with the environment the user started pytest with. When stdin ends, so do the check
under way, its trials, and this process.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from reprocheck.errors import ReprocheckError, UsageError
from reprocheck.model import Study, Target, Tolerance

__all__ = ["main"]


def main() -> None:
    """Answer requests until stdin ends."""
    # Whatever anybody prints goes to stderr; answers have a channel of their own.
    channel = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    busy = threading.Event()
    threading.Thread(target=_read, args=(requests, busy), daemon=True).start()
    try:
        while (line := requests.get()) is not None:
            busy.set()
            answer = _answer(msgspec.json.decode(line))
            busy.clear()
            channel.write(msgspec.json.encode(answer) + b"\n")
    except (KeyboardInterrupt, BrokenPipeError):
        pass


def _read(requests: queue.SimpleQueue[bytes | None], busy: threading.Event) -> None:
    for line in sys.stdin.buffer:
        requests.put(line)
    requests.put(None)
    if busy.is_set() and (ident := threading.main_thread().ident) is not None:
        # A real signal to that very thread: it waits for trials inside a lock, which nothing else interrupts.
        signal.pthread_kill(ident, signal.SIGINT)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    actions: dict[str, Callable[..., dict[str, Any]]] = {
        "check": _check,
        "close": _close,
        "baseline": _baseline,
        "html": _html,
    }
    try:
        return actions[request.pop("do")](**request)
    except ReprocheckError as error:
        kind = "UsageError" if isinstance(error, UsageError) else "HarnessError"
        return {"error": kind, "text": str(error)}
    except Exception:
        return {"error": "HarnessError", "text": "this is a bug in reprocheck:\n" + traceback.format_exc()}


def _check(
    *,
    target: str | dict[str, Any],
    root: str,
    name: str,
    slots: int | None,
    gpu: bool,
    options: dict[str, Any],
    **more: Any,
) -> dict[str, Any]:
    """Run a study into a new folder below `root`; says where it is and how it is told."""
    from reprocheck.api import check
    from reprocheck.engine.environment import user_environment
    from reprocheck.engine.gate import Gate, gpu_locks
    from reprocheck.engine.local import default_jobs
    from reprocheck.report.failure import failure_text
    from reprocheck.store.run import new_run_folder

    jobs = slots or default_jobs()
    gate = Gate(jobs, exclusive=gpu_locks(user_environment()) if gpu else ())
    place = msgspec.convert(target, Target) if isinstance(target, dict) else target
    study = check(place, out=new_run_folder(Path(root), name), gate=gate, jobs=jobs, **more, **options)
    return {"run": study.run_dir, "text": failure_text(study), "skipped": _skipped(study)}


def _skipped(study: Study) -> str | None:
    """Why the test skipped itself in every trial; None if it didn't."""
    from reprocheck.compare.suite import OUTCOME, REASON, text_of
    from reprocheck.store.run import Run

    if study.target.kind != "pytest" or study.verdict != "identical":
        return None
    run = Run(Path(study.run_dir))
    outputs = {output.name: output for output in run.records()[0].outputs}
    if OUTCOME not in outputs or text_of(outputs[OUTCOME], run.objects) != "skipped":
        return None
    return text_of(outputs[REASON], run.objects) if REASON in outputs else ""


def _close(*, run: str, rtol: float, atol: float, ulp: int) -> dict[str, Any]:
    """Whether all groups of a run agree within one tolerance."""
    from reprocheck.crossing import under_tolerance
    from reprocheck.report.failure import failure_text
    from reprocheck.store.run import Run

    study = under_tolerance(Run(Path(run)), lambda _: Tolerance(rtol=rtol, atol=atol, ulp=ulp))
    return {"verdict": study.verdict, "text": failure_text(study)}


def _html(*, checks: list[tuple[str, str]], file: str) -> dict[str, Any]:
    """Write the page of a session, whose checks are given as (test, run folder)."""
    from reprocheck.report.session import session_html
    from reprocheck.store.run import Run

    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    page = session_html([(test, Run(Path(run)).study()) for test, run in checks])
    path.write_text(page, encoding="utf-8", errors="replace")
    return {"file": file}


def _baseline(
    *, run: str, check: str, file: str, write: str | None, tolerance: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Compare a run with a baseline file, or with `write` leave what would be one there."""
    from reprocheck.baseline import baseline_of, compare_baselines, read_baseline
    from reprocheck.compare.tolerance import tolerance_for
    from reprocheck.store.run import Run

    stored = Run(Path(run))
    now = baseline_of(check, stored.study(), stored)
    if write is not None:
        path = Path(write)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(now, order="deterministic"), indent=1) + b"\n")
        temporary.replace(path)
        return {"status": "proposed"}
    rules = msgspec.convert(tolerance, dict[str, Tolerance])
    found = compare_baselines(now, read_baseline(Path(file)), tolerance_for(rules))
    return msgspec.to_builtins(found)  # type: ignore[no-any-return]
