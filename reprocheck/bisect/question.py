"""What a bisection is asked, and what all kinds of it share: folders, environments, the evaluator, where to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from reprocheck.api import resolve_python
from reprocheck.bisect.arms import Workload, open_workload
from reprocheck.bisect.conditions import Condition, parse_condition
from reprocheck.bisect.evaluate import ByCommand, ByStudy, ByTrial, Evaluator
from reprocheck.bisect.installers import Choice, Installer, Pip, Sources, choose
from reprocheck.bisect.interpreter import Interpreter, ask
from reprocheck.bisect.journal import BISECTS, Journal, find_unfinished, new_folder
from reprocheck.bisect.store import EnvironmentStore, default_cache
from reprocheck.engine.environment import user_environment
from reprocheck.errors import HarnessError, UsageError
from reprocheck.model import Record, Struct
from reprocheck.store.objects import digest_file

__all__ = ["Question", "Session"]

Note = Callable[[str], None]


class Question(Struct, frozen=True, kw_only=True):
    """Everything the user said."""

    kind: Literal["versions", "locks", "git"]
    workload: str = ""
    check: str = ""
    """A command that decides, instead of a workload."""
    until: str | None = None
    good: str | None = None
    bad: str | None = None
    """Ends: versions, lock files or revisions."""
    package: str = ""
    repo: str = ""
    find_fix: bool = False
    every_change: bool = False
    scouts: int = 0
    skip: tuple[str, ...] = ()
    """Versions, or ranges `A..B` of them, that are not run."""
    jobs: int = 1
    """Versions at a time."""
    runs: int | None = None
    most_runs: int = 300

    python: str | None = None
    base: Literal["inherit", "clean"] = "inherit"
    installer: Choice = "auto"
    sources: Sources = Sources()
    requirements: tuple[str, ...] = ()
    """What else is installed next to the package."""
    lock: str | None = None
    """A lock file that everything but the package is taken from."""
    yanked: bool = False
    preflight: bool = True
    explain: bool = True
    """Go on from the boundary to why the first bad version does it."""
    cache: str | None = None
    cache_limit: int = 10 << 30

    first_parent: bool = False
    subdir: str | None = None
    """Folder of the repository that goes on the module search path."""
    build: bool = False
    """Build and install each commit, instead of putting it on the module search path."""

    options: dict[str, Any] = {}
    """Options of a study, as in `check`."""
    argv: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    out: str | None = None
    resume: bool = False
    undo: int = 0
    command: tuple[str, ...] = ()

    @property
    def asks(self) -> dict[str, Any]:
        """What makes two bisections the same one, so that one can go on where the other stopped."""
        aside = {
            "command",
            "out",
            "resume",
            "undo",
            "jobs",
            "cache",
            "cache_limit",
            "most_runs",
            "preflight",
            "explain",
        }
        # As it reads back from a file: lists where there were tuples.
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return {name: value for name, value in plain.items() if name not in aside}


class _Stopping:
    """Ends studies under way, at the next trial, once `stop` is set."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def expect(self, _trials: int) -> None:
        self._look()

    def ended(self, _record: Record) -> None:
        self._look()

    def note(self, _text: str) -> None:
        self._look()

    def _look(self) -> None:
        if self._stop.is_set():
            raise HarnessError("interrupted")


class Session:
    """A question with what it takes to answer it. Use as a context manager."""

    journal: Journal
    evaluator: Evaluator

    def __init__(self, question: Question, note: Note, *, cwd: Path | None = None) -> None:
        """Raises `UsageError` where the question can't be asked; nothing is started or written yet."""
        self.question = question
        self.note = note
        self.stop = threading.Event()
        self.cwd = (cwd or Path.cwd()).absolute()
        self.environment = user_environment()
        if bool(question.workload) == bool(question.check):
            raise UsageError("give either a workload or --check COMMAND, to say what is run with every version")
        self.condition: Condition = parse_condition(question.until, check=bool(question.check))
        self.workload: Workload | None = None
        if question.workload:
            self.workload = open_workload(
                question.workload,
                cwd=self.cwd,
                environment=self.environment,
                argv=question.argv,
                probes=question.probes,
                options=question.options,
            )
        python = question.python or (self.workload.options.python if self.workload else None)
        self.python = resolve_python(python, self.environment)
        self.facts: dict[str, Any] = {"python": self.python, "base": question.base}
        """What is told of the environment in the report."""

    def __enter__(self) -> Self:
        question = self.question
        cache = Path(question.cache).absolute() if question.cache else default_cache(self.environment)
        self.store = EnvironmentStore(cache, question.cache_limit)
        root = self.cwd / BISECTS
        name = question.workload or question.check
        resume = question.resume or question.undo > 0
        if question.out:
            folder = Path(question.out).absolute()
        else:
            folder = find_unfinished(root, name) if resume else new_folder(root, name)
        path = self.workload.target.path if self.workload else None
        digest = digest_file(Path(path)) if path else ""
        spec = {"what": name, "workload_digest": digest, "interpreter": self.python, **question.asks}
        self.journal = Journal(folder, spec, resume=resume)
        if question.undo:
            for entry in self.journal.undo(question.undo):
                self.note(f"undone: {entry.name}, run {entry.run}")
        self.evaluator = self._evaluator(folder)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.stop.set()
        self.journal.__exit__()
        self.store.close()

    def interpreter(self) -> Interpreter:
        """The facts about the interpreter that environments are made from."""
        found = ask(self.python, self.environment)
        self.facts["python_version"] = found.version
        return found

    def installer(self, interpreter: Interpreter) -> tuple[Installer, Pip | None]:
        """What installs, and the pip that can ask an index."""
        sources = msgspec.structs.replace(
            self.question.sources, build=self.question.sources.build or self.question.build
        )
        found = choose(self.question.installer, interpreter, sources, self.environment, self.stop)
        self.note(
            f"installing with {found[0].name} {found[0].version}, for Python {interpreter.version} ({self.python})"
        )
        return found

    @property
    def trial_jobs(self) -> int | None:
        """Trials at a time in each of several versions that run at once; None: as the options say."""
        if self.question.jobs == 1:
            return None
        from reprocheck.engine.local import default_jobs

        return max(1, default_jobs() // self.question.jobs)

    def _evaluator(self, folder: Path) -> Evaluator:
        if self.workload is None:
            return ByCommand(
                self.condition,
                self.question.check,
                folder,
                environment=self.environment,
                cwd=str(self.cwd),
                timeout=float(self.question.options.get("timeout") or 600.0),
                stop=self.stop,
            )
        if self.condition.by_study:
            progress = _Stopping(self.stop)
            return ByStudy(self.condition, self.workload, folder, jobs=self.trial_jobs, progress=progress)
        return ByTrial(self.condition, self.workload, folder, progress=_Stopping(self.stop))
