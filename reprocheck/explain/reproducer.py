"""A plain script without reprocheck that shows the difference, run before it is handed out."""

from __future__ import annotations

import os
import subprocess
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat
from string import Template
from typing import Any

from reprocheck.engine.environment import trial_environment
from reprocheck.engine.trial import Job
from reprocheck.explain.operator_call import Call
from reprocheck.explain.remedy import Proposal
from reprocheck.explain.swap import Order, Swap
from reprocheck.model import Reproducer, Study

__all__ = ["DATA_SUFFIX", "NAME", "make_reproducer", "script"]

NAME = "reproducer.py"
DATA_SUFFIX = ".bin"
MOST_INSIDE = 64 << 10
"""Bytes of inputs that stand in the script itself; more lie in a file beside it."""
LINE = 116
SHOWS, AGREES = 1, 0
"""Exit statuses of the script."""


@dataclass(frozen=True)
class _Work:
    """What the script runs in each interpreter."""

    does: str
    """As half a sentence of the script's own description."""
    code: str
    """Constants and functions, `workload` among them, that go into the script."""
    name: str
    """`sys.argv[0]`."""
    seed: int | None
    operator: bool = True
    data: bytes = b""
    """What the script reads from the file beside it."""


def make_reproducer(
    study: Study,
    swap: Swap,
    context: Sequence[str],
    job: Job,
    folder: Path,
    remedy: Proposal | None,
    call: Call | None = None,
) -> Reproducer | None:
    """Write `reproducer.py` into `folder`: the smallest script that shows the difference when it is run.

    The operator alone, with its recorded inputs, comes first; then the whole workload; each with the pair of the swap
    and what it needs, and the workload with the whole orders as well. None for workloads that a plain script cannot run
    (a test of pytest) when there is no operator to call instead.
    """
    needed = {*swap.pair, *context} if len(swap.before) == len(swap.after) else set(swap.after)
    small = tuple(tuple(name for name in order if name in needed) for order in (swap.before, swap.after))
    whole = (swap.before, swap.after)
    attempts = [(_operator(call), small)] if call is not None else []
    if study.target.kind in ("function", "module", "script"):
        attempts += [(_workload(study, job), orders) for orders in dict.fromkeys((small, whole))]
    last = ""
    for work, orders in attempts:
        _write(folder, script(study, orders, job, remedy, work), work.data)
        status, last = _run(folder / NAME, job)
        if status == SHOWS:
            names = " and ".join(f"`{','.join(order) or '(no subject)'}`" for order in orders)
            verb = "differs" if last.endswith(" output") else "differ"
            text = f"{NAME} in the run folder {work.does} in two plain interpreters, {names}: {last} {verb}"
            if call is not None and not work.operator:
                text += f". `{call.operator}` alone, given its recorded inputs, does not show it, so all of it is run"
            return Reproducer(path=NAME, reproduces=True, text=text)
    if not attempts:
        return None
    return Reproducer(
        path=NAME,
        reproduces=False,
        text=f"{NAME} in the run folder does not show the difference outside reprocheck ({last or 'no output'})",
    )


def _write(folder: Path, text: str, data: bytes) -> None:
    (folder / NAME).write_text(text, encoding="utf-8")
    beside = (folder / NAME).with_suffix(DATA_SUFFIX)
    if data:
        beside.write_bytes(data)
    else:
        beside.unlink(missing_ok=True)


def script(study: Study, orders: Sequence[Order], job: Job, remedy: Proposal | None, work: _Work) -> str:
    """The script's text."""
    target = study.target
    changes = trial_environment(job.environment, job.env)
    environment: dict[str, str | None] = {**changes.pinned, **changes.changed}
    first = [action["name"] for action in remedy.actions if action["do"] == "import"] if remedy else []
    usable = remedy is not None and (remedy.env or first) and len(first) == len(remedy.actions)
    causes = "\n".join(f"{cause.status}: {cause.text}" for cause in study.causes)
    return _template("reproducer").substitute(
        headline=_quotable(study.headline),
        causes=_quotable(causes or "The cause is not known."),
        does=work.does,
        orders=pformat([list(order) for order in orders], width=100),
        work=work.code,
        environment=pformat(environment, width=100),
        path=pformat([*job.sys_path, *([str(Path(target.path).parent)] if target.path else [job.cwd])], width=100),
        name=repr(work.name),
        arguments=pformat(list(job.argv), width=100),
        seed=repr(work.seed),
        remedy=pformat({"env": dict(remedy.env), "first": first} if remedy is not None and usable else None, width=100),
    )


def _template(name: str) -> Template:
    return Template(Path(__file__).with_name(f"{name}.py.txt").read_text(encoding="utf-8"))


def _workload(study: Study, job: Job) -> _Work:
    target = study.target
    what = {"kind": target.kind, "path": target.path, "module": target.module, "name": target.name}
    known = pformat({key: value for key, value in what.items() if value is not None}, width=100)
    code = _template("reproducer_workload").substitute(workload=known)
    return _Work("runs the workload", code, target.path or target.module or "", job.seed, operator=False)


def _operator(call: Call) -> _Work:
    data = b"".join(array.data for array in call.arrays)
    text = b64encode(data).decode("ascii")
    lines = "\n".join(text[at : at + LINE] for at in range(0, len(text), LINE))
    arrays = [
        (array.library, array.dtype, array.shape, array.strides, array.device, len(array.data)) for array in call.arrays
    ]
    inside = len(data) <= MOST_INSIDE
    code = _template("reproducer_operator").substitute(
        operator=call.operator,
        place=f" at {call.place}" if call.place else "",
        arrays=pformat(arrays, width=100),
        data=f'"""\n{lines}\n"""' if inside else "None",
        imports="\n    ".join(f"import {module}" for module in call.modules),
        expression=call.expression,
    )
    does = f"calls `{call.operator}` with the inputs recorded{f' at {call.place}' if call.place else ''}"
    return _Work(does, code, NAME, None, data=b"" if inside else data)


def _quotable(text: str) -> str:
    """Text that can stand in a docstring."""
    return text.replace("\\", "\\\\").replace('"""', "'''")


def _run(path: Path, job: Job) -> tuple[int, str]:
    """(exit status, last line printed) of the script, run as a person would."""
    environment = trial_environment(job.environment, job.env).variables
    try:
        done: subprocess.CompletedProcess[Any] = subprocess.run(
            [job.python, str(path)],
            cwd=job.cwd,
            env={**environment, "PYTHONDONTWRITEBYTECODE": "1"}
            if "PYTHONDONTWRITEBYTECODE" in os.environ
            else environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=4 * job.timeout,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, str(error)
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines()
    shown = next((line for line in lines if line.startswith("different:")), lines[-1] if lines else "")
    return done.returncode, shown.removeprefix("different: ")
