"""What a check gives its test: the study, and assertions that fail as a test should."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from reprocheck.errors import DivergenceError, HarnessError
from reprocheck.pytest_plugin.keywords import check_keywords

if TYPE_CHECKING:
    from collections.abc import Callable

    from reprocheck.model import Group, OutputDifference, Study

__all__ = ["Outcome"]


class Outcome:
    """The outcome of one check."""

    def __init__(
        self, study: Study, text: str, close: Callable[..., dict[str, Any]], baseline: Callable[[], None]
    ) -> None:
        """`text` is the failure message; `close` judges under another tolerance; `baseline` compares with the file."""
        self._study = study
        self._text = text
        self._close = close
        self._baseline = baseline
        self.looked_at = False
        """True once the test has asked for anything: an outcome nobody looks at is no test."""

    def __repr__(self) -> str:
        return f"<reprocheck outcome: {self._study.headline}>"

    @property
    def study(self) -> Study:
        """Everything (see `reprocheck.model.Study`)."""
        self.looked_at = True
        return self._study

    @property
    def verdict(self) -> str:
        """One word: `identical`, `order-dependent`, and so on."""
        return self.study.verdict

    @property
    def groups(self) -> tuple[Group, ...]:
        """Trials with bit-equal outputs, the reference group first."""
        return self.study.groups

    @property
    def outputs(self) -> tuple[OutputDifference, ...]:
        """Every output, and how it differs."""
        return self.study.outputs

    @property
    def causes(self) -> tuple[Any, ...]:
        """What changes the outcome when it is changed; empty when nothing was looked for or found."""
        return tuple(getattr(self.study, "causes", ()))

    @property
    def run_dir(self) -> str:
        """The run folder."""
        return self.study.run_dir

    def assert_identical(self) -> None:
        """Pass when every order gave the same bits.

        Raises `DivergenceError` when they differ, `HarnessError` when there is no judgement; a workload that fails in
        every order fails the test with its own failure.
        """
        __tracebackhide__ = True
        self._require("identical")
        self._baseline()

    def assert_agree(self) -> None:
        """Pass when every order agrees within the tolerance the check was given; bit for bit without one."""
        __tracebackhide__ = True
        self._require("identical", "within-tolerance")
        self._baseline()

    def assert_close(self, *, rtol: float = 0.0, atol: float = 0.0, ulp: int = 0) -> None:
        """Pass when all orders agree within this tolerance: `|a - b| <= atol + rtol * |b|`, or at most `ulp` apart."""
        __tracebackhide__ = True
        self.looked_at = True
        check_keywords({"rtol": rtol, "atol": atol, "ulp": ulp}, "`assert_close`")
        if self._study.verdict != "identical":
            found = self._close(rtol=rtol, atol=atol, ulp=ulp)
            self._judge(found["verdict"], found["text"], ("within-tolerance", "identical"))
        self._baseline()

    def _require(self, *accepted: str) -> None:
        __tracebackhide__ = True
        self.looked_at = True
        verdict = self._study.verdict
        if verdict in accepted and self._study.exit_code != 0:
            # Orders agree, but importing only some of the subjects does not.
            raise DivergenceError(self._text)
        self._judge(verdict, self._text, accepted)

    def _judge(self, verdict: str, text: str, accepted: tuple[str, ...]) -> None:
        __tracebackhide__ = True
        if verdict in accepted:
            return
        if verdict == "fails-everywhere":
            pytest.fail(text)
        if verdict == "inconclusive":
            raise HarnessError(text)
        raise DivergenceError(text)
