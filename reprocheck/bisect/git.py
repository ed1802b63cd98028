"""A git repository: its history in a line, what a commit contains, and checkouts beside the user's own.

Only plumbing whose output is fixed is used; the user's working tree and index are never touched.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from reprocheck.errors import HarnessError, UsageError
from reprocheck.model import Struct

__all__ = ["Commit", "Repository"]

_SECONDS = 600.0
_CHUNK = 200


class Commit(Struct, frozen=True, kw_only=True):
    """A commit."""

    sha: str
    short: str
    title: str
    parents: tuple[str, ...]


class Repository:
    """The repository that holds `folder`. Raises `UsageError` if none does."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        """`environment` is the user's."""
        # Variables that a hook leaves behind would point git at another repository.
        self._environment = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
        self._environment["LC_ALL"] = "C"
        self._mutex = threading.Lock()
        self.top = folder
        self.top = Path(self._ask("rev-parse", "--show-toplevel", advice=f"`{folder}` is in no git repository"))
        self._common = Path(self.top, self._ask("rev-parse", "--git-common-dir"))

    def commit(self, revision: str) -> Commit:
        """The commit that a revision means. Raises `UsageError`."""
        advice = f"`{revision}` is no revision of `{self.top}`; give a commit, tag or branch"
        sha = self._ask("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}", advice=advice)
        return self._commits("--max-count=1", sha)[0]

    def line(self, good: str | None, bad: str) -> list[Commit]:
        """Commits from `good` (or the first of all) to `bad`, oldest first, following first parents."""
        if good is None:
            return self._commits("--first-parent", "--reverse", bad)
        start = self._commits("--max-count=1", good)
        return [*start, *self._commits("--first-parent", "--reverse", bad, f"^{good}")]

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether `old` is in the history of `new`."""
        return self._git("merge-base", "--is-ancestor", old, new).returncode == 0

    def merge_base(self, one: str, other: str) -> str | None:
        """The commit at which two histories parted; None if they never were one."""
        end = self._git("merge-base", one, other)
        return end.stdout.strip() if end.returncode == 0 else None

    def trees(self, commits: Sequence[Commit], folder: str) -> dict[str, str]:
        """Commit -> object name of what `folder` holds in it; commits without that folder are left out."""
        suffix = "" if folder in ("", ".") else folder
        found: dict[str, str] = {}
        for start in range(0, len(commits), _CHUNK):
            part = commits[start : start + _CHUNK]
            end = self._git("rev-parse", "--verify", *(f"{one.sha}:{suffix}" for one in part))
            names = end.stdout.split()
            if end.returncode == 0 and len(names) == len(part):
                found.update(zip((one.sha for one in part), names, strict=True))
                continue
            for one in part:
                single = self._git("rev-parse", "--verify", f"{one.sha}:{suffix}")
                if single.returncode == 0:
                    found[one.sha] = single.stdout.strip()
        return found

    def files(self, commit: str, folder: str) -> dict[str, str]:
        """File below `folder`, relative to it -> object name, in a commit."""
        prefix = "" if folder in ("", ".") else folder.rstrip("/") + "/"
        text = self._ask(
            "ls-tree", "-r", "-z", f"{commit}:{prefix.rstrip('/')}", advice=f"{commit} holds no `{folder}`"
        )
        found = {}
        for entry in text.split("\0"):
            facts, tab, path = entry.partition("\t")
            if tab:
                found[path] = facts.split()[2]
        return found

    def check_out(self, commit: str, folder: Path) -> str | None:
        """A working tree of `commit`, its submodules included, at `folder`, which must not exist.

        Returns why a submodule can't be had (its repository is gone, say), or None. Raises `HarnessError`.
        """
        with self._mutex:
            end = self._git("worktree", "add", "--detach", "--force", "--quiet", str(folder), commit)
        if end.returncode:
            raise HarnessError(f"git cannot check out {commit} to `{folder}`: {_last(end.stderr)}")
        return self._check_out_modules(folder, self._common / "modules")

    def _check_out_modules(self, tree: Path, clones: Path) -> str | None:
        """Submodules of a working tree; from the user's own clones below `clones` where there are some."""
        if not (tree / ".gitmodules").is_file():
            return None
        listed = self._git("-C", str(tree), "config", "--file", ".gitmodules", "--get-regexp", r"\.path$")
        for line in listed.stdout.splitlines():
            key, _, path = line.partition(" ")
            name = key.removeprefix("submodule.").removesuffix(".path")
            own = clones / name
            # git takes no submodule from a file unless told that it is the user's.
            local = ["-c", f"submodule.{name}.url={own}", "-c", "protocol.file.allow=always"] if own.is_dir() else []
            wanted = ["submodule", "update", "--init", "--quiet", "--", path]
            end = self._git("-C", str(tree), *local, *wanted)
            if end.returncode and local:
                # The user's clone may lack the commit.
                self._git("-C", str(tree), "submodule", "deinit", "--force", "--quiet", "--", path)
                end = self._git("-C", str(tree), *wanted)
            if end.returncode:
                return f"its submodule `{path}` can't be checked out: {_cause(end.stderr)}"
            why = self._check_out_modules(tree / path, own / "modules")
            if why is not None:
                return why
        return None

    def remove(self, folder: Path) -> None:
        """Take a working tree away again."""
        with self._mutex, contextlib.suppress(HarnessError):
            self._git("worktree", "remove", "--force", str(folder))
            shutil.rmtree(folder, ignore_errors=True)
            self._git("worktree", "prune")

    def _commits(self, *arguments: str) -> list[Commit]:
        text = self._ask("log", "-z", "--no-show-signature", "--format=%H%x1f%h%x1f%P%x1f%s", *arguments, "--")
        found = []
        for entry in text.split("\0"):
            if entry.strip():
                sha, short, parents, title = entry.strip("\n").split("\x1f", 3)
                title = re.sub(r"\s+", " ", title).strip()
                found.append(Commit(sha=sha, short=short, parents=tuple(parents.split()), title=title))
        return found

    def _ask(self, *arguments: str, advice: str = "") -> str:
        end = self._git(*arguments)
        if end.returncode:
            if advice:
                raise UsageError(advice)
            raise HarnessError(f"git {arguments[0]} failed: {_last(end.stderr)}")
        return end.stdout.strip("\n")

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = shutil.which("git", path=self._environment.get("PATH"))
        if program is None:
            raise UsageError("there is no git on PATH; install it to search a history")
        try:
            return subprocess.run(
                [program, "-C", str(self.top), *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise HarnessError(f"git {arguments[0]} did not end within {_SECONDS:.0f} s") from None


def _last(text: str) -> str:
    return text.strip().rpartition("\n")[2]


def _cause(text: str) -> str:
    """The first thing that git calls fatal; what follows is its consequence."""
    found = re.search(r"^fatal: (.*)", text, re.MULTILINE)
    return found[1] if found else _last(text)
