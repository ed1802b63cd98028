"""The controller's part: every check's outcome by the reports that arrive, merged files, baselines, the summary.

Outcomes travel as properties of each test's own report, and studies and proposed baselines as files of their own, so
that a worker that dies loses nothing but the check it was at.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from reprocheck.pytest_plugin.state import PREFIX, State

if TYPE_CHECKING:
    from reprocheck.model import Study

__all__ = ["Check", "Session"]


class Check(NamedTuple):
    """One check of the session."""

    test: str
    location: tuple[str, int | None, str]
    run: Path
    verdict: str
    baseline: str | None

    def document(self) -> dict[str, Any]:
        """The study as its run folder has it; empty if the folder is gone."""
        import json

        try:
            found: dict[str, Any] = json.loads((self.run / "study.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return found


class Result:
    """What `pytest_reprocheck_result` is given: a finished check, its study read when it is asked for."""

    def __init__(self, check: Check) -> None:
        """Of a check whose test has ended."""
        self.verdict = check.verdict
        self.run_dir = str(check.run)

    @property
    def study(self) -> Study:
        """Everything (see `reprocheck.model.Study`)."""
        from reprocheck.store.run import Run

        return Run(Path(self.run_dir)).study()

    @property
    def groups(self) -> Any:
        """Trials with bit-equal outputs, the reference group first."""
        return self.study.groups


class Session:
    """All checks of this pytest session; a plugin of its own, in the process where reports arrive."""

    def __init__(self, config: pytest.Config, state: State) -> None:
        """Nothing is read or written before the first check."""
        self._config = config
        self._state = state
        self._checks: dict[str, Check] = {}
        self._outcomes: dict[str, str] = {}
        self._written: list[str] = []

    @property
    def checks(self) -> list[Check]:
        """In the sequence of their tests' names, which is the same however many workers there are."""
        return sorted(self._checks.values(), key=lambda check: (check.test, str(check.run)))

    def outcome(self, check: Check) -> str:
        """What its test came to: `passed`, `failed`, `skipped`, `xfailed`, `xpassed`."""
        return self._outcomes.get(check.test, "unknown")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a phase of a test."""
        facts = [(name.removeprefix(PREFIX), str(v)) for name, v in report.user_properties if name.startswith(PREFIX)]
        if not facts:
            return
        test = next((value for name, value in facts if name == "test"), report.nodeid)
        if report.when == "call" or report.failed:
            expected = hasattr(report, "wasxfail")
            told = {"skipped": "xfailed", "passed": "xpassed"}.get(report.outcome) if expected else None
            self._outcomes[test] = told or report.outcome
        verdicts = [value for name, value in facts if name == "verdict"]
        runs = [value for name, value in facts if name == "run"]
        baselines = [value for name, value in facts if name == "baseline"]
        for number, (verdict, run) in enumerate(zip(verdicts, runs, strict=False)):
            check = Check(
                test=test,
                location=report.location,
                run=Path(run),
                verdict=verdict,
                baseline=baselines[number] if number < len(baselines) else None,
            )
            new = run not in self._checks
            self._checks[run] = check
            if new:
                self._config.hook.pytest_reprocheck_result(config=self._config, nodeid=test, result=Result(check))

    def pytest_sessionfinish(self) -> None:
        """Write what the session leaves: baselines, the merged files, the job summary."""
        self._write_baselines()
        settings = self._state.settings
        if settings.json is not None:
            import json

            settings.json.parent.mkdir(parents=True, exist_ok=True)
            settings.json.write_text(json.dumps(self._document(), indent=1) + "\n", encoding="utf-8")
            self._written.append(f"wrote {settings.json}")
        if settings.html is not None:
            self._written.append(self._write_html(settings.html))
        if self._checks and (summary := os.environ.get("GITHUB_STEP_SUMMARY")):
            from reprocheck.pytest_plugin.github import markdown

            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(markdown([(check, self.outcome(check), check.document()) for check in self.checks]))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """A line on what was checked, and one for everything a person should know or do. Nothing without checks."""
        terminal = terminalreporter
        if self._checks:
            counts: dict[str, int] = {}
            for check in self.checks:
                counts[check.verdict] = counts.get(check.verdict, 0) + 1
            told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
            terminal.section("reprocheck", sep="-")
            count = len(self._checks)
            terminal.line(
                f"{count} check{'' if count == 1 else 's'}: {told}; run folders in {self._state.settings.dir / 'runs'}"
            )
            for check in self.checks:
                if check.baseline == "incomparable":
                    terminal.line(f"{check.test}: the baseline is of another environment; its bits were not compared")
            for line in self._written:
                terminal.line(line)
        if self._checks and os.environ.get("GITHUB_ACTIONS") == "true":
            from reprocheck.pytest_plugin.github import annotation

            for check in self.checks:
                if self.outcome(check) == "failed":
                    terminal.line(annotation(check, check.document()))

    def _write_html(self, file: Path) -> str:
        """Write the page, and say so; a session must not end in an error of ours for want of one."""
        from reprocheck.errors import ReprocheckError

        try:
            self._state.checker.ask(
                "html", checks=[(check.test, str(check.run)) for check in self.checks], file=str(file)
            )
        except ReprocheckError as error:
            return f"did not write {file}: {error}"
        return f"wrote {file}"

    def _document(self) -> dict[str, Any]:
        return {
            "schema": "reprocheck/session",
            "schema_version": 1,
            "checks": [
                {"test": check.test, "outcome": self.outcome(check), "study": check.document()} for check in self.checks
            ],
        }

    def _write_baselines(self) -> None:
        """Move the proposals into place. Only here, so that two processes never write one file."""
        folder = self._state.session
        if not folder.is_dir():
            return
        import shutil

        for mark in sorted(folder.glob("*.path")):
            file = Path(mark.read_text(encoding="utf-8"))
            new = mark.with_suffix(".json").read_bytes()
            old = file.read_bytes() if file.exists() else None
            if old == new:
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary = file.with_suffix(".tmp")
            temporary.write_bytes(new)
            temporary.replace(file)
            self._written.append(f"baseline {'written anew' if old is not None else 'written'}: {file}")
        shutil.rmtree(folder, ignore_errors=True)
