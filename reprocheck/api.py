"""`check`: the whole job as one call. The command line and the pytest plugin are thin layers on it."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from reprocheck.compare.tolerance import tolerance_for, unmatched
from reprocheck.config import Options, Resolved, begins_block, layers_for, merge, script_block
from reprocheck.crossing import run_crossed
from reprocheck.engine.abilities import CORES, not_shown
from reprocheck.engine.choose import engine_for
from reprocheck.engine.environment import trial_environment, user_environment
from reprocheck.engine.gate import Gate, visible_gpus
from reprocheck.engine.process import run_process
from reprocheck.engine.runner import Progress, Runner, Silent
from reprocheck.engine.trial import Job
from reprocheck.errors import HarnessError, StoreError, UsageError, refuse_undecodable
from reprocheck.headline import coverage_text
from reprocheck.line import Request
from reprocheck.model import Study, Target, Tolerance
from reprocheck.plan.orders import OrderPlan, orders_for
from reprocheck.plan.subjects import SubjectsFound, find_subjects
from reprocheck.plan.target import parse_target
from reprocheck.plan.varied import levels_of, varied_settings
from reprocheck.sharing import run_sharing
from reprocheck.store.objects import digest_file
from reprocheck.store.run import Run, RunWriter, Spec, new_run_folder, runs_in
from reprocheck.words import counted

if TYPE_CHECKING:
    from reprocheck.explain.context import Context

__all__ = ["RUNS", "check", "explain_run", "resolve_python"]

RUNS = Path(".reprocheck") / "runs"


def check(
    target: str | Target,
    imports: Sequence[str] | None = None,
    *,
    order: Sequence[Sequence[str]] = (),
    out: str | Path | None = None,
    resume: bool = False,
    argv: Sequence[str] = (),
    probes: Sequence[str | Path] = (),
    environment: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    sys_path: Sequence[str] = (),
    gate: Gate | None = None,
    progress: Progress | None = None,
    command: Sequence[str] = (),
    explain: bool = True,
    budget: int | None = None,
    trace: str | None = None,
    trace_export: str | Path | None = None,
    **options: Any,
) -> Study:
    """Run `target` in fresh interpreters under every import order and return the verdict with its evidence.

    Args:
        target: `file.py::function`, `pkg.mod:function`, or a script; or a target that is ready to run.
        imports: The subjects, in the order to start from; found from the workload's own imports when not given.
        order: Single orders to run instead of a design.
        out: The run folder; by default a new one below `.reprocheck/runs`.
        resume: Continue what a killed run left in `out` (or in the newest unfinished run of the same workload).
        argv: Arguments the workload sees in `sys.argv`.
        probes: Files with snapshot readers of your own.
        environment: The environment trials start from; by default the one this process was started with.
        cwd: Where trials run; by default here.
        sys_path: Folders that trials search for modules first.
        gate: What trials pass, to be bounded together with those of other processes.
        progress: Told about trials as they end.
        command: The command that repeats this, for the report.
        explain: On a divergence, go on to its rule, cause and remedy.
        budget: Trials that explaining may cost; by default enough for most studies.
        trace: What to trace, to say where a divergence starts: `auto` (lines and operators after a divergence; the
            default where it is explained), `lines`, `ops`, `kernels` (all of it, and which kernels ran) or `none`.
        trace_export: A folder for the traces as text, one operator and one executed line a line.
        **options: As in `[tool.reprocheck]`: orders, max_orders, fail_fast, reduce, repeat, max_repeat, jobs,
            timeout, python, env, seed, outputs, tolerance, rtol, atol, ulp, presence, observer, vary, isolation,
            engine, scheduler, workers, machines, shared, gpus.

    Raises:
        UsageError: The question can't be asked; nothing that was measured is lost.
        HarnessError: The instrument failed.
    """
    here = Path(cwd or Path.cwd()).absolute()
    refuse_undecodable(str(here), *argv)
    base = dict(environment) if environment is not None else user_environment()
    options = _knobs({**options, "imports": list(imports) if imports is not None else None})
    place = target if isinstance(target, Target) else parse_target(target, here)
    path = Path(place.path) if place.path else None
    resolved = merge(layers_for(path, cwd=here, environ=base, command=options))
    settings = resolved.options
    _refuse_unfit(resolved)
    if not isinstance(target, Target):
        place = parse_target(target, here, function=settings.workload)
    subjects, source = _subjects(place, resolved, base, here, sys_path)
    varied = varied_settings(settings.vary, settings.env, visible_gpus(base))
    plan = orders_for(
        subjects,
        settings.orders,
        seed=settings.seed,
        explicit=order,
        varies_otherwise=settings.presence or bool(varied),
        most=settings.max_orders,
    )
    python = resolve_python(settings.python, base)
    job = Job(
        target=place,
        python=python,
        cwd=str(here),
        environment=base,
        env={**(_pytest_variables(base) if place.kind == "pytest" else {}), **settings.env},
        seed=settings.seed,
        timeout=settings.timeout,
        argv=tuple(argv),
        probes=tuple(str(Path(probe).absolute()) for probe in probes),
        sys_path=tuple(sys_path),
    )
    spec = Spec(
        target=place,
        workload_digest=digest_file(Path(place.path)) if place.path else "",
        subjects=plan.subjects,
        orders=plan.orders,
        python=python,
        cwd=str(here),
        argv=job.argv,
        sys_path=job.sys_path,
        env=job.env,
        seed=settings.seed,
        repeat=settings.repeat,
        timeout=settings.timeout,
        presence=settings.presence,
        observer=settings.observer,
        isolation=settings.isolation,
        levels=levels_of(varied),
        probes=job.probes,
    )
    request = Request(
        target=place,
        subjects=plan.subjects,
        subjects_from=source,
        orders=plan.orders,
        plan=_plan_text(plan) + (f"; crossed with {len(spec.levels)} levels" if varied else ""),
        stated=plan.stated,
        fail_fast=settings.fail_fast,
        reduce="trace" if settings.reduce == "trace" else "none",
        repeat=settings.repeat,
        max_repeat=settings.max_repeat,
        presence=settings.presence,
        observer=settings.observer,
        outputs=settings.outputs,
        dependencies=_dependencies(path),
        cwd=str(here),
        environment=_environment_facts(job, settings),
        command=tuple(command),
        version=_version(),
        notes=(*_block_notes(path), *_notes(settings)),
        blame=explain,
        varied=varied,
    )
    folder = _folder(out, resume=resume, here=here, target=place)
    exported = _export_folder(trace_export, here)
    told = progress or Silent()
    with RunWriter(folder, spec, resume=resume) as writer:
        with engine_for(job, writer.scratch, settings, gate=gate, done=writer.records(), note=told.note) as engine:
            runner = Runner(writer, engine, told, mixed=settings.machines == "any")
            line = run_sharing if settings.isolation == "shared-prefix" else run_crossed
            study = line(request, runner, tolerance_for(settings.tolerance))
            unused = unmatched(settings.tolerance, [output.name for output in study.outputs])
            study = msgspec.structs.replace(
                study,
                selected=settings.outputs,
                tolerance=settings.tolerance,
                isolation=settings.isolation,
                notes=(*study.notes, *unused),
            )
            runner = runner.at(study.level)
            study = _located(study, runner, trace or ("auto" if explain else "none"), exported)
            if explain:
                study = _explained(study, runner, budget)
        writer.finish(study)
    return study


def explain_run(
    folder: str | Path,
    *,
    budget: int | None = None,
    environment: Mapping[str, str] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Study:
    """The study of a stored run with its rule, causes, remedy and reproducer; written back into the run folder.

    What was found out before, by `run` or by an interrupted `explain`, is in the journal and costs nothing. Before
    anything else it is checked that the orders still give what they gave.

    Raises:
        UsageError: no such run, nothing to explain in it, or its outcomes are not the same any more.
    """
    path = Path(folder).absolute()
    stored = Run(path)
    before, spec = stored.study(), stored.spec
    base = dict(environment) if environment is not None else user_environment()
    job = Job(
        target=spec.target,
        python=spec.python,
        cwd=spec.cwd,
        environment=base,
        env=spec.env,
        seed=spec.seed,
        timeout=spec.timeout,
        argv=spec.argv,
        sys_path=spec.sys_path,
        probes=spec.probes,
    )
    study = before
    told = progress or Silent()
    with RunWriter(path, spec, resume=True) as writer:
        try:
            with engine_for(job, writer.scratch, Options(jobs=jobs), note=told.note) as engine:
                runner = Runner(writer, engine, told).at(before.level)
                if before.traced is None:
                    study = _located(before, runner, "auto", None)
                study = _explained(study, runner, budget, stored=True)
        finally:
            writer.finish(study)
    return study


def _export_folder(asked: str | Path | None, here: Path) -> Path | None:
    """The folder for exported traces, made before anything is run. Raises `UsageError` if it can't be."""
    if asked is None:
        return None
    folder = here / asked
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--trace-export `{folder}` can't be written: {error.strerror}; name another folder"
        ) from error
    return folder


def _located(study: Study, runner: Runner, trace: str, export: Path | None) -> Study:
    """`study` with the place where its divergence starts. Failing on the way does not take the verdict away."""
    from reprocheck.explain.locate import locate

    if trace == "none":
        return study
    try:
        return locate(study, _context(study, runner), trace=trace, export=export)
    except (HarnessError, StoreError) as error:
        return msgspec.structs.replace(study, notes=(*study.notes, f"locating ended early: {error}"))


def _context(study: Study, runner: Runner, *, budget: int | None = None, stored: bool = False) -> Context:
    from reprocheck.explain.context import Context

    # Forked trials count for orders that have no others; where they were dropped, for none.
    records, forked = Run(runner.writer.folder).records(study.level), {arm.order for arm in study.orders if arm.forked}
    return Context(
        runner=runner,
        records=tuple(record for record in records if not record.trial.forked or record.trial.order in forked),
        tolerance_for=tolerance_for(study.tolerance),
        outputs=study.selected,
        budget=budget,
        stored=stored,
    )


def _explained(study: Study, runner: Runner, budget: int | None, *, stored: bool = False) -> Study:
    """`study` with its explanation. That the instrument fails on the way does not take the verdict away."""
    from reprocheck.explain.worth import worth_explaining

    if not worth_explaining(study):
        return study
    from reprocheck.explain.inquiry import explain

    context = _context(study, runner, budget=budget, stored=stored)
    try:
        return explain(study, context)
    except HarnessError as error:
        return msgspec.structs.replace(study, notes=(*study.notes, f"explaining ended early: {error}"))


def _notes(settings: Options) -> tuple[str, ...]:
    """What this machine cannot show, if trials run on it."""
    if settings.scheduler is not None:
        return ()
    return tuple(f"{item.why}: {item.what} cannot show here" for item in not_shown(CORES))


def _version() -> str:
    from reprocheck import __version__

    return __version__


def _pytest_variables(base: Mapping[str, str]) -> dict[str, str]:
    """What the user tells pytest by variables; a trial starts without those of a pytest that runs around it."""
    names = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    return {name: base[name] for name in names if name in base}


def _knobs(options: dict[str, Any]) -> dict[str, Any]:
    """`rtol`, `atol` and `ulp` as the tolerance of every output; None means not given."""
    knobs = {name: options.pop(name, None) for name in ("rtol", "atol", "ulp")}
    given = {name: value for name, value in knobs.items() if value is not None}
    for name, value in given.items():
        if not (math.isfinite(value) and value >= 0):
            raise UsageError(f"`{name}` must be zero or a positive, finite number, not {value}")
    if given:
        options["tolerance"] = {**(options.get("tolerance") or {}), "*": Tolerance(**given)}
    return {name: value for name, value in options.items() if value is not None and value != ()}


def _refuse_unfit(resolved: Resolved) -> None:
    """Raise `UsageError` for options that do not go together, where one of them was given for this study."""
    settings = resolved.options
    choosing = {
        "fail-fast": settings.fail_fast,
        "reduce": settings.reduce != "none",
        "isolation": settings.isolation != "fresh",
    }
    sparing = [name for name, given in choosing.items() if given]
    if settings.vary and sparing:
        raise UsageError(f"--vary needs every order under every level, which --{sparing[0]} spares; leave one out")
    if choosing["isolation"] and len(sparing) > 1:
        raise UsageError(
            f"--isolation {settings.isolation} and --{sparing[0]} both decide which orders are run; leave one out"
        )
    if settings.engine != "local":
        return
    for name in ("scheduler", "workers", "machines", "shared", "gpus"):
        if resolved.origins[name] == "the command line":
            raise UsageError(f"--{name} is about a Dask cluster; add --engine dask, or leave it out")


def _subjects(
    target: Target, resolved: Resolved, base: Mapping[str, str], here: Path, sys_path: Sequence[str]
) -> tuple[tuple[str, ...], str]:
    if resolved.options.imports is not None:
        return tuple(resolved.options.imports), resolved.origins["imports"]
    if target.suite:
        raise UsageError(f"`{target.text}` is a whole suite; name the subjects with --imports a,b")
    folder = str(Path(target.path).parent) if target.path else str(here)
    search = [folder, *sys_path, *filter(None, base.get("PYTHONPATH", "").split(os.pathsep)), *sys.path]
    entered = target
    if target.kind == "pytest":
        # Of `Class::test[id]` the function's own name: its imports are not conditional.
        function = (target.name or "").partition("[")[0].rpartition("::")[2]
        entered = msgspec.structs.replace(target, name=function)
    found = find_subjects(entered, search)
    names = tuple(name for name in _installed(found, resolved, base) if target.kind != "pytest" or name != "pytest")
    if not names:
        raise UsageError(
            f"`{target.text}` imports no package whose order could matter; name the subjects, "
            "as --imports a,b or imports=[…]"
        )
    missing = [name for name in found.subjects if name not in names]
    left = f"; left out, not installed: {', '.join(missing)}" if missing else ""
    return names, f"the workload's own imports{left}"


def _installed(found: SubjectsFound, resolved: Resolved, base: Mapping[str, str]) -> tuple[str, ...]:
    """The subjects without those that the workload imports only on condition and that aren't there.

    Asked of the trials' own interpreter, and only when there is such a subject: it costs a process.
    """
    optional = [item.name for item in found.found if item.optional]
    if not optional:
        return tuple(found.subjects)
    python = resolve_python(resolved.options.python, base)
    code = "import importlib.util as u, sys; print(*[n for n in sys.argv[1:] if u.find_spec(n)])"
    answer = subprocess.run(
        [python, "-c", code, *optional],
        capture_output=True,
        text=True,
        check=False,
        env=dict(base),
        stdin=subprocess.DEVNULL,
    )
    there = set(answer.stdout.split())
    return tuple(name for name in found.subjects if name not in optional or name in there)


def resolve_python(wanted: str | None, base: Mapping[str, str]) -> str:
    """Absolute path of the interpreter; a symlink is kept, since a venv's python is one.

    Raises:
        UsageError: it is not there, or is something else than a Python.
    """
    if wanted is None:
        return sys.executable
    import shutil

    found = shutil.which(wanted, path=base.get("PATH"))
    if found is None:
        raise UsageError(f"`{wanted}` is not an executable file; give the path of a Python interpreter with --python")
    path = str(Path(found).absolute())
    asked = [path, "-I", "-S", "-c", "import sys; print(sys.hexversion)"]
    end = run_process(asked, env=base, cwd=Path.cwd(), timeout=60.0, stop=threading.Event())
    if not end.stdout.text.strip().isdigit():
        said = end.stderr.text.strip().rpartition("\n")[2] or f"exit status {end.status}"
        raise UsageError(f"`{wanted}` is no Python interpreter that runs ({said}); name another with --python")
    return path


def _dependencies(path: Path | None) -> tuple[str, ...]:
    block = script_block(path) if path else None
    return block.dependencies if block else ()


def _block_notes(path: Path | None) -> tuple[str, ...]:
    """That the workload's file begins a block of metadata which is none."""
    if path is None or script_block(path) is not None or not begins_block(path):
        return ()
    rule = "it must end with a line `# ///`, and every line before that must be a comment"
    return (f"the `# /// script` block of `{path.name}` is ignored: {rule}",)


def _plan_text(plan: OrderPlan) -> str:
    count = len(plan.orders)
    text = f"{plan.design}: {counted(count, 'order')} of {len(plan.subjects)} subjects"
    if plan.cut_from is not None:
        text += f", the first of {plan.cut_from}"
    if plan.design != "all" or plan.cut_from is not None:
        text += f"; would cover {coverage_text(plan.stated)}"
    return text + (f"; seed {plan.seed}" if plan.seed is not None else "")


def _environment_facts(job: Job, settings: Options) -> dict[str, Any]:
    shaped = trial_environment(job.environment, job.env)
    here = {"machine": platform.machine(), "system": platform.platform(), "cores": len(os.sched_getaffinity(0))}
    return {
        "python": job.python,
        **({"engine": settings.engine} if settings.engine != "local" else {}),
        # Of trials elsewhere, `machines` tells in the study.
        **(here if settings.scheduler is None else {}),
        "pinned": shaped.pinned,
        "dropped": list(shaped.dropped),
        "changed": {name: "removed" if value is None else value for name, value in shaped.changed.items()},
        "seed": job.seed,
    }


def _folder(out: str | Path | None, *, resume: bool, here: Path, target: Target) -> Path:
    if out is not None:
        return here / out
    root = here / RUNS
    if resume:
        from reprocheck.store.run import PARTIAL

        for folder in runs_in(root):
            if folder.name.endswith(PARTIAL) and Run(folder).spec.target.text == target.text:
                return folder.with_name(folder.name.removesuffix(PARTIAL))
        raise UsageError(f"no unfinished run of `{target.text}` in {RUNS}; name one with --out, or leave --resume out")
    return new_run_folder(root, target.text)
