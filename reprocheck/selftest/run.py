"""The self-test: plant, run the whole line, compare."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from reprocheck.api import check
from reprocheck.engine.abilities import AVX512, COMPILER, CORES, GPU, NotChecked, ability, not_shown
from reprocheck.selftest.faults import FAULTS
from reprocheck.selftest.planted import Fault
from reprocheck.selftest.score import Case, SelfTest, judge_case, summary
from reprocheck.store.run import Run

__all__ = ["missing", "run_case", "run_selftest"]

TIMEOUT_S = 60.0
BYSTANDER = "bystander"

_NEEDS: dict[str, tuple[Callable[[], bool], str]] = {
    "cores": (lambda: ability(CORES).can, "one core"),
    "compiler": (lambda: ability(COMPILER).can, "no C compiler (cc)"),
    "torch": (lambda: importlib.util.find_spec("torch") is not None, "torch is not installed"),
    "x86-64": (lambda: platform.machine() == "x86_64", "not an x86-64 processor"),
}


def missing(fault: Fault) -> str | None:
    """Why a fault cannot show on this machine; None if it can."""
    return next((why for need in fault.needs for there, why in [_NEEDS[need]] if not there()), None)


def run_selftest(
    *,
    quick: bool = False,
    isolation: str = "fresh",
    faults: Sequence[Fault] = FAULTS,
    told: Callable[[Case], None] = lambda _: None,
) -> SelfTest:
    """Plant `faults` (the quick ones, with `quick`) one after the other; `told` hears of each as it ends.

    Two subjects have no common beginning to share, so with `isolation` shared-prefix an empty module is a third one.
    """
    from reprocheck import __version__

    begin = time.monotonic()
    chosen = [fault for fault in faults if fault.quick or not quick]
    skipped = [(fault, why) for fault in chosen if (why := missing(fault)) is not None]
    cases = []
    with tempfile.TemporaryDirectory(prefix="reprocheck-selftest-") as scratch:
        for number, fault in enumerate(chosen):
            if missing(fault) is None:
                case = run_case(fault, Path(scratch).resolve() / f"{number:02d}", isolation=isolation)
                cases.append(case)
                told(case)
    planted, found, recall, precision = summary(cases)
    return SelfTest(
        reprocheck_version=__version__,
        quick=quick,
        isolation=isolation,
        planted=planted,
        found=found,
        recall=recall,
        precision=precision,
        trials=sum(case.trials for case in cases),
        seconds=round(time.monotonic() - begin, 1),
        not_checked=(*(NotChecked(what=fault.name, why=why) for fault, why in skipped), *not_shown(GPU, AVX512)),
        cases=tuple(cases),
    )


def run_case(fault: Fault, folder: Path, *, isolation: str = "fresh") -> Case:
    """Plant one fault in `folder`, run the whole line on it, and judge what came out."""
    begin = time.monotonic()
    folder.mkdir(parents=True)
    fault.write(folder)
    if fault.prepare:
        subprocess.run([sys.executable, "-c", fault.prepare], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    options = {"timeout": TIMEOUT_S, "isolation": isolation, **fault.options}
    imports = fault.imports
    if isolation == "shared-prefix" and len(imports) == 2:
        imports = (*imports, BYSTANDER)
        (folder / f"{BYSTANDER}.py").touch()
    study = check("work.py::run", imports, cwd=folder, out=folder / "run", **options)
    trials = len(Run(folder / "run").journal())
    return judge_case(fault, study, folder, trials, time.monotonic() - begin)
