"""What is looked for (`--until`): how it is written, and whether a study, a trial or a command shows it."""

from __future__ import annotations

from typing import Literal, get_args

from reprocheck.config import did_you_mean
from reprocheck.errors import HarnessError, UsageError
from reprocheck.model import Record, Stream, Struct, Study, Verdict

__all__ = ["Condition", "Judged", "judge_exit", "judge_record", "judge_study", "parse_condition"]

Judged = tuple[bool | None, str]
"""(whether the condition holds, or None when that can't be said; what was seen, or why not)."""

_SKIP = 125
_SHELLS_OWN = (126, 127)  # not executable, not found: the command never ran
_NAMES = ("order-dependent", "drift", "state:KEY", "verdict:NAME", "exit:N", "match:TEXT")


class Condition(Struct, frozen=True, kw_only=True):
    """What makes a version bad."""

    kind: Literal["order-dependent", "drift", "state", "verdict", "exit", "match", "check"]
    value: str = ""

    @property
    def text(self) -> str:
        """As on the command line."""
        return f"{self.kind}:{self.value}" if self.value else self.kind

    @property
    def by_study(self) -> bool:
        """Whether it takes a study of all orders; the others look at the workload as it is."""
        return self.kind in ("order-dependent", "verdict")

    @property
    def compares(self) -> bool:
        """Whether versions are compared with the good end."""
        return self.kind in ("drift", "state")

    @property
    def words(self) -> str:
        """For sentences: what a bad version does."""
        return {
            "order-dependent": "results depend on the import order",
            "drift": "the outputs differ from the good end's",
            "state": f"`{self.value}` differs from the good end's",
            "verdict": f"the verdict is `{self.value}`",
            "exit": f"the exit status is {self.value}",
            "match": f"`{self.value}` is printed",
            "check": "the check fails",
        }[self.kind]


def parse_condition(text: str | None, *, check: bool) -> Condition:
    """The condition that `text` means; with `check` a command decides, and only exit:N and match:TEXT make sense.

    Raises:
        UsageError: unknown condition, or one that lacks its value or can't be had with --check.
    """
    if text is None:
        return Condition(kind="check" if check else "order-dependent")
    name, colon, value = text.partition(":")
    plain = name in ("order-dependent", "drift")
    if name not in {known.partition(":")[0] for known in _NAMES} or (plain and colon):
        hint = did_you_mean(name, [known.partition(":")[0] for known in _NAMES], f"; there are {', '.join(_NAMES)}")
        raise UsageError(f"--until `{text}` is no condition{hint}")
    if not plain and not value:
        raise UsageError(f"--until `{text}` lacks its value; write e.g. {_EXAMPLES[name]}")
    if name == "verdict" and value not in get_args(Verdict):
        hint = did_you_mean(value, get_args(Verdict), f"; there are {', '.join(get_args(Verdict))}")
        raise UsageError(f"`{value}` is no verdict{hint}")
    if name == "exit" and not value.removeprefix("-").isdigit():
        raise UsageError(f"--until `{text}` names no exit status; write e.g. exit:3, or exit:-11 for signal 11")
    if check and name not in ("exit", "match"):
        raise UsageError(f"with --check the command decides, so --until `{text}` can't hold; use exit:N or match:TEXT")
    return Condition(kind=name, value=value)  # type: ignore[arg-type]


_EXAMPLES = {
    "state": "state:environ.now.OMP_NUM_THREADS",
    "verdict": "verdict:noisy",
    "exit": "exit:3",
    "match": "match:'nan loss'",
}


def judge_study(condition: Condition, study: Study) -> Judged:
    """Whether the study's verdict is what is looked for."""
    seen = study.headline
    if study.verdict == "inconclusive":
        return None, seen
    if condition.kind == "verdict":
        if study.verdict == condition.value:
            return True, seen
        return (None if study.verdict == "fails-everywhere" else False), seen
    if study.verdict in ("order-dependent", "order-dependent-with-noise", "fails-in-some-orders"):
        return True, seen
    if study.verdict in ("identical", "within-tolerance"):
        return False, seen
    # Broken or noisy: an order dependence could be there and not show.
    return None, seen


def judge_record(condition: Condition, record: Record) -> Judged:
    """Whether a single trial ended, or printed, as looked for (`exit:N`, `match:TEXT`)."""
    failure = record.failure
    if failure is not None and failure.kind in ("target", "unsupported"):
        raise UsageError(failure.message)
    seen = "ok" if failure is None else failure.message
    if condition.kind == "match":
        found = _found(condition.value, record.stdout, record.stderr) or (
            failure and condition.value in failure.message
        )
        if found:
            return True, seen if failure else f"prints `{condition.value}`"
        return (False, "ok") if failure is None else (None, f"fails otherwise: {seen}")
    return _by_status(
        int(condition.value), record.exit_status, timed_out=bool(failure and failure.kind == "timeout"), seen=seen
    )


def judge_exit(condition: Condition, status: int, stdout: Stream, stderr: Stream, *, timed_out: bool) -> Judged:
    """Whether a `--check` command found what is looked for.

    125 can't say; 126, 127, 128 and above, and a signal mean that the check itself is broken (unless that very
    status is asked for), which is nobody's fault but the check's.

    Raises:
        HarnessError: the check is broken.
    """
    wanted = int(condition.value) if condition.kind == "exit" else None
    if status != wanted and not timed_out and (status in _SHELLS_OWN or status >= 128 or status < 0):
        last = stderr.text.strip().rpartition("\n")[2]
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        raise HarnessError(
            f"the check {how}{f' ({last})' if last else ''}, which says nothing about the version; correct the command "
            "(125 means: can't say), then go on with --resume"
        )
    last = (stdout.text.strip() or stderr.text.strip()).rpartition("\n")[2][:200]
    seen = f"status {status}{f': {last}' if last else ''}"
    if timed_out:
        return None, "no end in time"
    if status == _SKIP and wanted != _SKIP:
        return None, f"the check can't say ({seen})"
    if wanted is not None:
        return _by_status(wanted, status, timed_out=False, seen=seen)
    if condition.kind == "match":
        if _found(condition.value, stdout, stderr):
            return True, f"prints `{condition.value}`"
        return (False, seen) if status == 0 else (None, f"fails otherwise: {seen}")
    return status != 0, seen


def _by_status(wanted: int, status: int, *, timed_out: bool, seen: str) -> Judged:
    if timed_out:
        return None, seen
    if status == wanted:
        return True, seen
    if status == 0 or wanted == 0:
        return False, seen
    return None, f"fails otherwise: {seen}"


def _found(text: str, *streams: Stream) -> bool:
    return any(text in stream.text for stream in streams)
