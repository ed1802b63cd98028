"""Questions that can't be asked, as far as the first trials show it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reprocheck.compare.groups import refuse_empty_selection
from reprocheck.errors import NothingSelectedError, UsageError
from reprocheck.model import Record
from reprocheck.stages.request import Request

__all__ = ["refuse_bad_input"]


def refuse_bad_input(request: Request, records: Sequence[Record]) -> None:
    """Raise `UsageError` with the one sentence for a question that cannot be asked."""
    records = [record for record in records if record.trial.judged]
    failures = [record.failure for record in records]
    for failure in failures:
        if failure is not None and failure.kind in ("target", "unsupported"):
            raise UsageError(failure.message)
        if failure is not None and failure.kind == "nothing":
            raise NothingSelectedError(failure.message)
    if all(failure is not None and failure.missing_module for failure in failures):
        for failure in failures:
            assert failure is not None  # noqa: S101 - by the line above
            missing = failure.missing_module or ""
            wanted = failure.subject is not None and (failure.subject + ".").startswith(missing + ".")
            if wanted or failure.subject is None:
                raise UsageError(_missing(request, missing, failure.subject if wanted else None))
    if not any(failures) and not any(record.outputs for record in records):
        raise UsageError(
            f"`{request.target.text}` recorded nothing to compare; return a value, "
            "call `reprocheck.record(name, value)`, or, in a script, leave arrays or numbers in its globals"
        )
    finished = [record for record in records if record.failure is None and record.outputs]
    refuse_empty_selection(finished, request.outputs, request.target.text)


def _missing(request: Request, missing: str, subject: str | None) -> str:
    """The sentence for a module that is not there; `subject` where it is one."""
    parent, dot, name = missing.rpartition(".")
    if dot:
        return f"`{parent}` has no submodule `{name}`, which {_asks(subject)}; correct the name, or install what has it"
    beside = Path(request.cwd) / missing
    if beside.with_suffix(".py").is_file() or (beside / "__init__.py").is_file():
        return (
            f"`{missing}` is in `{request.cwd}`, where trials of a script in another folder don't look for modules, as "
            "Python doesn't; set PYTHONPATH to that folder, or install it"
        )
    what = "module" if subject is None else "subject"
    install = " ".join(request.dependencies) or missing
    python = request.environment.get("python", "python")
    return (
        f"{what} `{subject or missing}` isn't installed for `{python}`; "
        f"install it, e.g. `{python} -m pip install {install}`, or choose another interpreter with --python"
    )


def _asks(subject: str | None) -> str:
    return "the workload imports" if subject is None else f"the subject `{subject}` needs"
