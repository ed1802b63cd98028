"""Every task of the project. `python3 noxfile.py -s demo` and `python3 noxfile.py -s tests` need Python 3.11+ only.

Started without nox, this file makes an environment with nox in `.nox/bootstrap` and runs itself in it, which also
works where the system's Python refuses `pip install`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent


def bootstrap() -> None:
    """Run this file's sessions with the nox of `.nox/bootstrap`, made at the first call."""
    folder = HERE / ".nox" / "bootstrap"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("making .nox/bootstrap with nox in it (once)", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "nox>=2025.5"], check=True)
        (folder / "ready").touch()
    os.execv(python, [str(python), "-m", "nox", "-f", str(HERE / "noxfile.py"), *sys.argv[1:]])


try:
    import nox
except ModuleNotFoundError:
    if __name__ != "__main__":
        raise
    bootstrap()

nox.needs_version = ">=2025.5"
nox.options.sessions = ["lint", "types", "tests"]
# pip, not uv: pip alone honours the constraints and wheel folders by which a machine provides its CPU build of torch.
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True

# nox would put temporary files below the repository, where pytest runs inside tests take our configuration for theirs.
# Tests rewrite modules within a second, which byte code of the first version would hide.
SETTINGS = {"TMPDIR": tempfile.gettempdir(), "PYTHONDONTWRITEBYTECODE": "1"}
PYPROJECT = nox.project.load_toml(HERE / "pyproject.toml")


def install(session: nox.Session, *groups: str) -> None:
    """Install the package and dependency groups; refuses to take a CUDA build of torch by accident."""
    wanted = [requirement for group in groups for requirement in nox.project.dependency_groups(PYPROJECT, group)]
    torch = [requirement for requirement in wanted if requirement.startswith("torch==")]
    if torch and not os.environ.get("REPROCHECK_ALLOW_CUDA"):
        report = Path(session.create_tmp()) / "pip.json"
        session.run("python", "-m", "pip", "install", "--dry-run", "--quiet", "--report", str(report), *torch)
        planned = [item["metadata"]["name"] for item in json.loads(report.read_text())["install"]]
        if any(name.startswith("nvidia-") for name in planned):
            session.error(
                f"pip would take a CUDA build of {torch[0]} (several GB). Point pip at a CPU build, "
                "e.g. with PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS, or set REPROCHECK_ALLOW_CUDA=1 to take it"
            )
    session.install("-e", ".", *wanted)


def run_pytest(session: nox.Session, *arguments: str, **environment: str) -> None:
    """Run pytest with the settings that tests need, and `environment`."""
    # Tests start many interpreters, which write no byte code: without any, each would compile all of the package anew.
    session.run("python", "-m", "compileall", "-q", "reprocheck")
    session.run("pytest", *arguments, env={**SETTINGS, **environment})


@nox.session
def demo(session: nox.Session) -> None:
    """The main job: three workloads, one identical, one with a real order dependence, one with the mission's story."""
    install(session, "demo")
    for target in ("scenarios/cupy_torch.py", "scenarios/mkl_torch.py", "scenarios/toolbox_drift"):
        # Exit status 1 is a divergence: the finding, not a failure.
        session.run("reprocheck", "run", target, *session.posargs, success_codes=[0, 1])


@nox.session
def tests(session: nox.Session) -> None:
    """The test suite: unit, integration, plugin."""
    install(session, "test", "torch-cpu")
    arguments = session.posargs or ["-n", "2", "--dist", "worksteal", "tests"]
    run_pytest(session, *arguments)


@nox.session
def long(session: nox.Session) -> None:
    """What takes minutes more: faults planted in torch, fork trees, clusters, varied settings, a dry GPU check."""
    install(session, "test", "torch-cpu")
    arguments = session.posargs or ["-n", "2", "--dist", "worksteal", "tests"]
    run_pytest(session, "-m", "long", *arguments)


@nox.session
@nox.parametrize("version", ["8.3.5", "9.2.0"])
def plugin(session: nox.Session, version: str) -> None:
    """The pytest plugin on the oldest pytest it supports and on the newest known."""
    install(session, "test")
    session.install(f"pytest=={version}")
    arguments = session.posargs or ["-n", "2", "tests/plugin", "tests/unit/pytest_plugin"]
    run_pytest(session, *arguments)


@nox.session
def browser(session: nox.Session) -> None:
    """Reports in a browser. Needs Chromium (`apt-get install chromium`, or CHROMIUM=PATH), and npm for axe-core."""
    install(session, "test")
    run_pytest(session, "-m", "browser", *(session.posargs or ["tests/browser"]))


@nox.session
def realworld(session: nox.Session) -> None:
    """Real packages at pinned versions: where their differences start, why, and since when; a package's own suite."""
    install(session, "test", "demo", "scenarios")
    session.install("--no-deps", *nox.project.dependency_groups(PYPROJECT, "scenarios-bare"))
    # Those two have sessions of their own.
    elsewhere = [f"--ignore=tests/realworld/test_{name}.py" for name in ("scenarios", "cublas")]
    # ultralytics writes its settings when it is first imported.
    environment = {"REPROCHECK_ALL_PACKAGES": "1", "YOLO_CONFIG_DIR": session.create_tmp()}
    arguments = session.posargs or [*elsewhere, "tests/realworld"]
    run_pytest(session, "-m", "realworld", *arguments, **environment)


@nox.session
def scenarios(session: nox.Session) -> None:
    """Every scenario on the CPU, against its own metadata's verdict; what can't be had is skipped with the reason."""
    install(session, "test", "demo", "scenarios")
    # Without their dependencies: torchvision asks for a torch of its own. A package that is missing costs its scenario.
    bare = nox.project.dependency_groups(PYPROJECT, "scenarios-bare")
    for requirement in bare:
        session.install("--no-deps", requirement, success_codes=[0, 1])
    arguments = session.posargs or ["-rs", "tests/realworld/test_scenarios.py"]
    run_pytest(session, "-m", "realworld", *arguments, REPROCHECK_DEVICE="cpu")


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff, and the direction of imports."""
    install(session, "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy, strict, over the package and its tests."""
    install(session, "types")
    session.run("mypy")


@nox.session(default=False)
def cublas(session: nox.Session) -> None:
    """The mission's root cause without a GPU: two cuBLAS copies. Downloads torch's CUDA build and more, about 6 GB."""
    session.warn("this session installs torch's CUDA build, cupy and a second cuBLAS: about 6 GB")
    session.install("-e", ".", "pytest", "torch==2.14.1", "cupy-cuda13x==14.2.0", "numpy")
    toolkit = Path(session.virtualenv.location).resolve() / "toolkit"
    if not (toolkit / "lib64").exists():
        session.run("python", "-m", "pip", "install", "--no-deps", "--target", str(toolkit), "nvidia-cublas==13.4.1.1")
        (toolkit / "lib64").symlink_to(next(toolkit.glob("nvidia/*/lib")))
    site = session.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", silent=True)
    environment = {"REPROCHECK_CUBLAS_SITE": str(site).strip(), "REPROCHECK_CUBLAS_TOOLKIT": str(toolkit)}
    run_pytest(session, "-m", "realworld", "tests/realworld/test_cublas.py", *session.posargs, **environment)


@nox.session
def bench(session: nox.Session) -> None:
    """Every budget as a ratio against its rival in one run; writes bench.json."""
    install(session, "test", "demo", "realworld")
    session.run("python", "tests/benchmarks/bench.py", *session.posargs)


if __name__ == "__main__":
    nox.main()
