"""Questions that can't be asked, as far as the first trials show it."""

from __future__ import annotations

from collections.abc import Sequence

from reprocheck.compare.groups import select_outputs
from reprocheck.errors import NothingSelectedError, UsageError
from reprocheck.model import Record
from reprocheck.stages.request import Request

__all__ = ["refuse_bad_input"]

NAMES_SHOWN = 8


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
                what = "subject" if wanted else "module"
                install = " ".join(request.dependencies) or missing
                python = request.environment.get("python", "python")
                raise UsageError(
                    f"{what} `{failure.subject if wanted else missing}` isn't installed for `{python}`; "
                    f"install it, e.g. `{python} -m pip install {install}`, or choose another interpreter with --python"
                )
    if not any(failures) and not any(record.outputs for record in records):
        raise UsageError(
            f"`{request.target.text}` recorded nothing to compare; return a value, "
            "call `reprocheck.record(name, value)`, or, in a script, leave arrays or numbers in its globals"
        )
    _refuse_empty_selection(request, [record for record in records if record.failure is None and record.outputs])


def _refuse_empty_selection(request: Request, records: Sequence[Record]) -> None:
    """Nothing selected would be nothing compared, and so `identical`."""
    if not records or any(select_outputs(record, request.outputs) for record in records):
        return
    patterns = ", ".join(f"`{pattern}`" for pattern in request.outputs)
    names = [f"`{output.name}`" for output in records[0].outputs]
    more = ", …" if len(names) > NAMES_SHOWN else ""
    raise UsageError(
        f"no output of `{request.target.text}` matches --outputs {patterns}: "
        f"it has {', '.join(names[:NAMES_SHOWN])}{more}"
    )
