"""`reprocheck`: the group of commands, and the one place where errors become exit codes."""

from __future__ import annotations

import errno
import importlib
import io
import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import click

from reprocheck import __version__
from reprocheck.errors import EXIT_HARNESS, EXIT_INTERRUPTED, ReprocheckError, refuse_undecodable

__all__ = ["cli", "main"]

COMMANDS = {
    "run": "Run a workload under every import order and give the verdict.",
    "pytest": "Run a whole test suite under every import order, unchanged, and compare test by test.",
    "bisect": "Find the version, changed package or commit since which a workload shows something.",
    "explain": "Find the rule, the cause and the remedy of a stored run's divergence.",
    "diff": "Compare two runs, two records or two files of arrays.",
    "state": "Show what is captured after each import, for one order or two side by side.",
    "list": "List scenarios, past runs and past bisections.",
    "report": "Tell a stored run again.",
    "selftest": "Plant faults of every kind and compare what is found with what was planted.",
    "doctor": "Are identical trials identical here? What the engine and the machine do to them.",
    "clean": "Delete run folders and bisections.",
}


_UNWRITABLE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _UnwritableError(Exception):
    """Stdout takes nothing more."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number


class _Lazy(click.Group):
    """Loads a command's module when it is asked for: `reprocheck --help` must not wait for numpy."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"reprocheck.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from reprocheck.config import did_you_mean

            ctx.fail(f"no command `{args[0]}`{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:
            # click itself ends with 1 when the reader of our output went away, which means a divergence.
            if error.errno in _UNWRITABLE and error.filename is None:
                raise _UnwritableError(error.errno, str(error.strerror)) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reprocheck")
def cli() -> None:
    r"""Does the import order change your numbers? Find out where, why and since when.

    \b
    Exit status: 0 all agree, 1 they diverge, 2 the question is wrong, 3 the instrument
    failed or cannot say, 5 nothing selected, 130 interrupted.
    """


def main() -> NoReturn:
    """The entry point: every error is one sentence on stderr and the exit code it stands for."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    for stream in (sys.stdout, sys.stderr):
        # A report holds arrows, and names from bytes that were no text; no terminal may fail over them.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _status()
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, _UnwritableError) as error:
        number = error.number if isinstance(error, _UnwritableError) else error.errno
        if number != errno.EPIPE:
            text = error if isinstance(error, _UnwritableError) else error.strerror
            print(f"reprocheck: cannot write to stdout: {text}", file=sys.stderr)
        # What is left in the buffer has nowhere to go, and would fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = EXIT_HARNESS
    sys.exit(status)


def _status() -> int:
    """Carry out the command; the exit code, with errors told on stderr."""
    try:
        refuse_undecodable(*sys.argv[1:])
        status = cli.main(standalone_mode=False)
    except SystemExit as error:
        status = error.code
    except click.exceptions.Exit as error:
        status = error.exit_code
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (KeyboardInterrupt, click.exceptions.Abort):
        print("interrupted; what has run is kept, continue with --resume", file=sys.stderr)
        status = EXIT_INTERRUPTED
    except ReprocheckError as error:
        print(f"reprocheck: {error}", file=sys.stderr)
        status = error.exit_code
    except _UnwritableError:
        raise
    except Exception:
        import traceback

        traceback.print_exc()
        print("reprocheck: this is a bug in reprocheck, not a finding about your workload", file=sys.stderr)
        status = EXIT_HARNESS
    return status if isinstance(status, int) else 0


def _as_interrupt(_number: int, _frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does: children gone, journal intact."""
    raise KeyboardInterrupt
