"""The worker must not disturb what it measures: what its start loads, on every interpreter there is."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reprocheck.engine.environment import user_environment
from reprocheck.engine.local import LocalEngine
from reprocheck.engine.phases import RawRecord
from reprocheck.engine.trial import WORKER, Job
from reprocheck.model import Record, Target, Trial

MAX_MODULES = 12
PROBE = """
import sys
print(sorted(sys.modules))
print(sorted({l.split()[-1] for l in open('/proc/self/maps') if '.so' in l}))
"""


def interpreters() -> list[str]:
    found = {sys.executable}
    for minor in range(9, 15):
        path = shutil.which(f"python3.{minor}")
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            found.add(path)
    return sorted(found)


@pytest.fixture(params=interpreters())
def python(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def start(python: str, folder: Path, *, capture: bool) -> tuple[list[str], list[str]]:
    """(modules, libraries) that a trial's only subject finds when it is imported."""
    (folder / "first.py").write_text(
        "import sys\n"
        "modules = sorted(sys.modules)\n"
        "libraries = sorted({l.split()[-1] for l in open('/proc/self/maps') if '.so' in l})\n"
    )
    (folder / "work.py").write_text(
        "import first\ndef run():\n    return [repr(first.modules), repr(first.libraries)]\n"
    )
    environment = {name: value for name, value in user_environment().items() if not name.startswith("PYTHON")}
    job = Job(
        target=Target(text="work.py::run", kind="function", path=str(folder / "work.py"), name="run"),
        python=python,
        cwd=str(folder),
        environment=environment,
    )
    texts: list[bytes] = []

    def keep(raw: RawRecord, place: Path) -> Record:
        texts.extend((place / "arrays" / output.file).read_bytes() for output in raw.outputs)
        return raw.record

    (record,) = LocalEngine(job, folder / "scratch", jobs=1).run(
        [Trial(order=("first",), repeat=0, capture=capture)], keep
    )
    assert record.ok, record.failure
    modules, libraries = (ast.literal_eval(t[8 + int.from_bytes(t[:8], "little") :].decode()) for t in texts)
    return modules, libraries


@pytest.mark.parametrize("capture", [True, False])
def test_start_loads_no_library_and_few_modules(python: str, tmp_path: Path, capture: bool) -> None:
    modules, libraries = start(python, tmp_path, capture=capture)
    plain = subprocess.run(
        [python, "-c", PROBE],
        capture_output=True,
        text=True,
        check=True,
        env={name: value for name, value in user_environment().items() if not name.startswith("PYTHON")},
    ).stdout.splitlines()
    before, mapped = (ast.literal_eval(line) for line in plain)
    new = sorted(set(modules) - set(before) - {"first"})

    assert len(new) <= MAX_MODULES, new
    assert set(libraries) <= set(mapped)


def test_control_list_is_pinned(tmp_path: Path) -> None:
    """The bare arm's own modules, one by one: a new one must be a decision."""
    modules, _ = start(sys.executable, tmp_path, capture=False)
    ours = {name for name in modules if name.startswith(("_reprocheck_worker", "reprocheck"))}

    assert ours == {"_reprocheck_worker", "_reprocheck_worker.jsonl", "_reprocheck_worker.trial", "reprocheck"}


def test_worker_imports_only_the_standard_library() -> None:
    allowed = set(sys.stdlib_module_names) | {"_reprocheck_worker"}
    for path in WORKER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            foreign = [name for name in names if name.partition(".")[0] not in allowed]
            assert not foreign, f"{path.name} imports {foreign}"


def test_worker_compiles_for_the_oldest_python() -> None:
    for path in WORKER.rglob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 9))


def test_no_file_of_ours_shadows_a_users_module(lab_folder: Path) -> None:
    assert json.loads((lab_folder / "names").read_text()) == "users"


@pytest.fixture
def lab_folder(tmp_path: Path) -> Path:
    """A user's module called like one of the worker's files."""
    (tmp_path / "outputs.py").write_text("owner = 'users'\n")
    (tmp_path / "trial.py").write_text("owner = 'users'\n")
    (tmp_path / "work.py").write_text(
        "import json, outputs, trial\n"
        "def run():\n    open('names', 'w').write(json.dumps(outputs.owner))\n    return 1\n"
    )
    job = Job(
        target=Target(text="work.py::run", kind="function", path=str(tmp_path / "work.py"), name="run"),
        python=sys.executable,
        cwd=str(tmp_path),
        environment=user_environment(),
    )
    engine = LocalEngine(job, tmp_path / "scratch", jobs=1)
    (record,) = engine.run([Trial(order=("outputs", "trial"), repeat=0)], lambda raw, _: raw.record)
    assert record.ok, record.failure
    return tmp_path
