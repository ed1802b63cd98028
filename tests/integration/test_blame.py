"""Who set it: state that an import changes without an event gets its module and its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprocheck.model import Event, Study
from tests.conftest import Lab


def blamed(study: Study, key: str) -> Event:
    difference = next(item for item in (*study.state_differences, *study.hazards) if item.key == key)
    return next(change.event for change in difference.changes if change.event is not None)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})", "process.affinity"),
        ("sys.setswitchinterval(0.123)", "process.switch_interval"),
        ("gc.disable()", "process.gc.enabled"),
    ],
)
def test_a_setter_call(lab: Lab, line: str, key: str) -> None:
    lab.write(
        {
            "b/__init__.py": "import b.runtime",
            "b/runtime.py": f"import gc, os, sys\n\nif 'a' in sys.modules:\n    {line}\n",
        },
        a="",
        work="def run(): return 1.0",
    )
    study = lab.check(explain=True)

    found = [item.key for item in study.hazards]
    assert study.verdict == "identical"
    assert key in found, found
    event = blamed(study, key)
    assert (Path(event.file or "").name, event.line, event.module) == ("runtime.py", 4, "b.runtime")


def test_an_environment_write_needs_no_blame_trial(lab: Lab) -> None:
    lab.write(
        a="",
        b="import os, sys\nif 'a' in sys.modules: os.environ['OMP_NUM_THREADS'] = '1'",
        work="def run(): return 1.0",
    )
    study = lab.check(explain=True)

    event = blamed(study, "environ.python.OMP_NUM_THREADS")
    assert (Path(event.file or "").name, event.line) == ("b.py", 2)
    assert len(list((Path(study.run_dir) / "records").iterdir())) == 6
