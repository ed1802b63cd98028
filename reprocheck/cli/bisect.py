"""`reprocheck bisect`: since when."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from reprocheck.cli.run import variables
from reprocheck.errors import StoreError, UsageError

__all__ = ["command"]

FORMATS = ("text", "json", "markdown")


@click.command(name="bisect", context_settings={"ignore_unknown_options": False})
@click.argument("workload", required=False, default="", metavar="[WORKLOAD]")
@click.option("--check", metavar="CMD", help="Let a command decide instead: 0 good, 125 can't say, else bad")
@click.option("--until", metavar="CONDITION", help="What makes a version bad (see above) [default: order-dependent]")
@click.option("--package", "-p", metavar="NAME", help="Search the versions of this package")
@click.option("--good", metavar="END", help="A version (or revision) without it [default: look for one]")
@click.option("--bad", metavar="END", help="A version (or revision) with it [default: the newest]")
@click.option("--good-lock", metavar="FILE", help="Search the difference of two lock files: the one without it")
@click.option("--bad-lock", metavar="FILE", help="The lock file with it")
@click.option("--repo", metavar="DIR", help="Search the history of this git repository")
@click.option("--find-fix", is_flag=True, help="Turn it round: --bad is the old end, find where it was fixed")
@click.option(
    "--scout", "scouts", type=click.IntRange(0), default=0, metavar="K", help="First look at K evenly spaced versions"
)
@click.option("--every-change", is_flag=True, help="Find every version at which the outcome changes")
@click.option("--skip", multiple=True, metavar="V|A..B", help="Leave out a version, or all from A to B (repeatable)")
@click.option(
    "--jobs", "-j", type=click.IntRange(1), default=1, metavar="N", help="Versions at a time; never changes the answer"
)
@click.option(
    "--runs", type=click.IntRange(1), metavar="N", help="Runs of the ends and the boundary [default: 3; 1 study]"
)
@click.option(
    "--max-runs", type=click.IntRange(10), default=300, metavar="N", help="Where a noisy search gives up [default: 300]"
)
@click.option("--with", "requirements", multiple=True, metavar="REQ", help="Install this as well (repeatable)")
@click.option("--with-lock", "lock", metavar="FILE", help="Take everything but the package from this lock file")
@click.option(
    "--base", type=click.Choice(["inherit", "clean"]), help="Keep what the interpreter has, or not [default: inherit]"
)
@click.option("--python", metavar="PATH", help="Interpreter to make environments from")
@click.option(
    "--installer", type=click.Choice(["auto", "uv", "pip"]), default="auto", help="What installs [default: uv if there]"
)
@click.option("--index-url", "-i", metavar="URL", help="Index of packages")
@click.option("--extra-index-url", multiple=True, metavar="URL", help="Another one (repeatable)")
@click.option("--find-links", "-f", multiple=True, metavar="DIR", help="Folder with wheels (repeatable)")
@click.option("--no-index", is_flag=True, help="Only folders, no index")
@click.option("--pre", is_flag=True, help="Pre-releases too")
@click.option("--yanked", is_flag=True, help="Versions their makers took back, too")
@click.option(
    "--build/--no-build", default=False, help="Build from source where there is no wheel (git: build and install)"
)
@click.option("--no-preflight", is_flag=True, help="Don't look beforehand what can be installed")
@click.option("--no-explain", is_flag=True, help="Stop at the boundary, don't explain the first bad version")
@click.option("--first-parent", is_flag=True, help="Git: stop at a merge, don't look into it")
@click.option(
    "--subdir", metavar="DIR", help="Git: folder of the repository to import from [default: src, else the root]"
)
@click.option("--cache", metavar="DIR", help="Where environments are kept [default: ~/.cache/reprocheck]")
@click.option("--cache-limit", type=float, default=10.0, metavar="GIB", help="How much of them [default: 10]")
@click.option("--imports", metavar="A,B,…", help="Subjects [default: the workload's imports]")
@click.option("--orders", metavar="DESIGN", help="Which orders a study runs, as in `run`")
@click.option("--repeat", type=int, metavar="N", help="Trials of each order to begin with, as in `run`")
@click.option("--max-repeat", type=int, metavar="N", help="Trials of each order at most, as in `run`")
@click.option("--timeout", type=float, metavar="S", help="Seconds a trial, or the check, may take [default: 600]")
@click.option("--env", multiple=True, metavar="K=V", help="Set a variable in every trial (repeatable)")
@click.option("--seed", type=int, metavar="N", help="Seed generators before the workload runs")
@click.option("--rtol", type=float, metavar="X", help="Relative tolerance [default: bits]")
@click.option("--atol", type=float, metavar="X", help="Absolute tolerance")
@click.option("--ulp", type=int, metavar="N", help="Tolerance in units in the last place")
@click.option("--outputs", multiple=True, metavar="PATTERN", help="Compare only these outputs (repeatable)")
@click.option("--arg", "argv", multiple=True, metavar="ARG", help="Argument for the workload's sys.argv (repeatable)")
@click.option("--out", metavar="DIR", help="Folder of the bisection [default: a new one in .reprocheck/bisects]")
@click.option("--resume", is_flag=True, help="Go on with one that was killed")
@click.option("--undo", type=click.IntRange(1), metavar="N", help="Take back the last N runs and go on")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="What goes to stdout")
@click.option("--output", multiple=True, metavar="FMT:PATH", help="Also write a report to a file (repeatable)")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour on stdout")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr")
def command(format_: str, output: tuple[str, ...], color: str, quiet: bool, **options: Any) -> None:
    """Find the version, changed package or commit since which WORKLOAD shows something.

    \b
    CONDITION is one of
      order-dependent   results depend on the import order
      drift             outputs, as the workload itself imports, differ from the good end's
      state:KEY         a captured key differs from the good end's
      verdict:NAME      a study's verdict is NAME
      exit:N            it ends with status N
      match:TEXT        it prints TEXT

    \b
    Exit status: 0 found, 1 the ends do not differ, 2 the question is wrong, 3 it cannot
    be said, 5 nothing to search, 130 interrupted.
    """  # noqa: D301 - click wants the character itself
    from reprocheck.bisect.run import bisect

    files = [_split(text) for text in output]
    question = _question(options)
    report = bisect(question, _note(quiet=quiet))
    _write(report, format_, files, color)
    sys.exit(report.exit_code)


def _question(options: dict[str, Any]) -> Any:
    """The question that the options ask. Raises `UsageError` when they ask none, or several."""
    from reprocheck.bisect.installers import Sources
    from reprocheck.bisect.question import Question
    from reprocheck.model import Tolerance

    kind = _kind(options)
    knobs = {name: options[name] for name in ("rtol", "atol", "ulp") if options[name] is not None}
    study: dict[str, Any] = {
        "imports": _names(options["imports"]),
        "orders": options["orders"],
        "repeat": options["repeat"],
        "max_repeat": options["max_repeat"],
        "timeout": options["timeout"],
        "seed": options["seed"],
        "env": variables(options["env"]) or None,
        "outputs": list(options["outputs"]) or None,
        "tolerance": {"*": Tolerance(**knobs)} if knobs else None,
    }
    locks = kind == "locks"
    return Question(
        kind=kind,  # type: ignore[arg-type]
        workload=options["workload"],
        check=options["check"] or "",
        until=options["until"],
        good=_path(options["good_lock"]) if locks else options["good"],
        bad=_path(options["bad_lock"]) if locks else options["bad"],
        package=options["package"] or "",
        repo=_path(options["repo"]) or "",
        find_fix=options["find_fix"],
        every_change=options["every_change"],
        scouts=options["scouts"],
        skip=options["skip"],
        jobs=options["jobs"],
        runs=options["runs"],
        most_runs=options["max_runs"],
        python=options["python"],
        base=options["base"] or ("clean" if locks or options["lock"] else "inherit"),
        installer=options["installer"],
        sources=Sources(
            index_url=options["index_url"],
            extra_index_urls=options["extra_index_url"],
            find_links=tuple(text if "://" in text else str(_path(text)) for text in options["find_links"]),
            no_index=options["no_index"],
            pre=options["pre"],
            build=options["build"],
        ),
        requirements=options["requirements"],
        lock=_path(options["lock"]),
        yanked=options["yanked"],
        preflight=not options["no_preflight"],
        explain=not options["no_explain"],
        cache=_path(options["cache"]),
        cache_limit=int(options["cache_limit"] * 2**30),
        first_parent=options["first_parent"],
        subdir=options["subdir"],
        build=options["build"],
        options={name: value for name, value in study.items() if value is not None},
        argv=options["argv"],
        out=_path(options["out"]),
        resume=options["resume"],
        undo=options["undo"] or 0,
        command=tuple(_command()),
    )


def _kind(options: dict[str, Any]) -> str:
    asked = {
        "versions": bool(options["package"]) and not options["repo"],
        "git": bool(options["repo"]),
        "locks": bool(options["good_lock"] or options["bad_lock"]),
    }
    chosen = [name for name, is_asked in asked.items() if is_asked]
    if len(chosen) != 1:
        raise UsageError(
            "say what is searched: --package NAME (its versions), --good-lock A --bad-lock B (two lock files), "
            "or --repo DIR --good REV --bad REV (a git history)"
        )
    kind = chosen[0]
    if kind == "locks" and not (options["good_lock"] and options["bad_lock"]):
        raise UsageError("two lock files make a difference: give both --good-lock and --bad-lock")
    return kind


def _path(text: str | None) -> str | None:
    return None if text is None else str(Path(text).expanduser().absolute())


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _command() -> list[str]:
    """What was typed, without what must not be repeated."""
    once = {"--resume": 0, "--undo": 1, "--out": 1, "--output": 1, "--format": 1, "--color": 1, "--quiet": 0, "-q": 0}
    words, skip = ["reprocheck", "bisect"], 0
    for word in sys.argv[2:] if sys.argv[1:2] == ["bisect"] else []:
        if skip:
            skip -= 1
        elif word in once:
            skip = once[word]
        elif word.partition("=")[0] not in once:
            words.append(word)
    return words


def _split(text: str) -> tuple[str, Path]:
    name, colon, path = text.partition(":")
    if not colon or name not in FORMATS or not path:
        raise UsageError(f"--output `{text}` is not FORMAT:PATH with a format out of {', '.join(FORMATS)}")
    return name, Path(path)


def _note(*, quiet: bool) -> Any:
    begin = time.monotonic()

    def note(text: str) -> None:
        if not quiet:
            print(f"{time.monotonic() - begin:7.1f} s  {text}", file=sys.stderr, flush=True)

    return note


def _write(report: Any, format_: str, files: list[tuple[str, Path]], color: str) -> None:
    from reprocheck.bisect.report import print_report, render
    from reprocheck.report.text import console_for

    for name, path in files:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render(report, name), encoding="utf-8")
        except OSError as error:
            raise StoreError(f"cannot write `{path}`: {error.strerror}; choose another path for --output") from error
    if format_ == "text":
        print_report(report, console_for(sys.stdout, color=color))
    else:
        sys.stdout.write(render(report, format_))
    sys.stdout.flush()
