"""A workload in one version's environment: studies of all orders, and single arms whose records can be compared."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from reprocheck.api import check
from reprocheck.bisect.records import Place
from reprocheck.compare.arrays import compare
from reprocheck.compare.groups import outcome_key, select_outputs
from reprocheck.compare.source import Source
from reprocheck.compare.tolerance import tolerance_for
from reprocheck.config import layers_for, merge, script_block
from reprocheck.config.options import Options
from reprocheck.engine.environment import trial_environment
from reprocheck.engine.local import LocalEngine, default_jobs
from reprocheck.engine.process import run_process
from reprocheck.engine.runner import Progress, Runner, Silent
from reprocheck.engine.trial import Job
from reprocheck.errors import UsageError
from reprocheck.model import Record, Struct, Study, Target, Tolerance, Trial
from reprocheck.plan.subjects import find_subjects
from reprocheck.plan.target import parse_target
from reprocheck.store.objects import ObjectStore, digest_file
from reprocheck.store.run import PARTIAL, Run, RunWriter, Spec

__all__ = ["Arm", "Workload", "neutral", "open_workload", "own_order_sequence"]

_GUARD_SECONDS = 60.0
# Where would the trial's interpreter find the package? Asked the way a trial looks: its script's folder first.
_GUARD = """
import importlib.util, json, sys
if sys.path and sys.path[0] == "":
    del sys.path[0]
if sys.argv[1]:
    sys.path.insert(0, sys.argv[1])
found = {}
for name in sys.argv[2:]:
    try:
        spec = importlib.util.find_spec(name)
    except Exception as error:
        spec = None
    places = [] if spec is None else [spec.origin] if spec.has_location else list(spec.submodule_search_locations or [])
    found[name] = [place for place in places if place]
print(json.dumps(found))
"""


class Arm(Struct, frozen=True, kw_only=True):
    """Records of one version under one order, with the place of their arrays."""

    records: tuple[Record, ...]
    folder: str

    @property
    def objects(self) -> ObjectStore:
        """The arrays of the records' outputs."""
        return ObjectStore(Path(self.folder) / "objects")


class Workload(Struct, frozen=True, kw_only=True):
    """The code under test and how its trials are run, whatever the version."""

    target: Target
    cwd: str
    environment: dict[str, str]
    """The user's environment."""
    options: Options
    given: dict[str, Any]
    """Options as given by the caller, handed on to `check`."""
    dependencies: tuple[str, ...] = ()
    """What the workload's metadata says must be installed."""
    argv: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """What stands first on a trial's module search path."""
        return str(Path(self.target.path).parent) if self.target.path else self.cwd

    def study(self, place: Place, folder: Path, *, jobs: int | None = None, progress: Progress | None = None) -> Study:
        """The study of all orders with this version. A study that is there already is read, not run.

        Raises:
            UsageError: the question can't be asked of this version.
            HarnessError: the instrument failed.
        """
        if (folder / "study.json").exists():
            return Run(folder).study()
        # The environments are made on this machine.
        options = {**self.given, "python": place.python, "engine": "local"}
        if jobs is not None:
            options["jobs"] = jobs
        if place.env:
            options["env"] = {**self.options.env, **place.env}
        return check(
            self.target.text,
            out=folder,
            resume=True,
            environment=self.environment,
            cwd=self.cwd,
            argv=self.argv,
            probes=self.probes,
            progress=progress,
            explain=False,
            **options,
        )

    def arm(
        self,
        place: Place,
        order: Sequence[str],
        repeats: range,
        folder: Path,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Arm:
        """Trials of one order with this version; with no subjects in it, the workload imports as it always does.

        Trials that are there already are not run again. Raises as `study`.
        """
        options = self.options
        job = Job(
            target=self.target,
            python=place.python,
            cwd=self.cwd,
            environment=self.environment,
            env={**options.env, **place.env},
            seed=options.seed,
            timeout=options.timeout,
            argv=self.argv,
            probes=self.probes,
        )
        spec = Spec(
            target=self.target,
            workload_digest=digest_file(Path(self.target.path)) if self.target.path else "",
            subjects=(),
            orders=(),
            python=place.python,
            cwd=self.cwd,
            argv=self.argv,
            env=job.env,
            seed=options.seed,
            timeout=options.timeout,
        )
        with RunWriter(folder, spec, resume=True) as writer:
            engine = LocalEngine(job, writer.scratch, jobs=jobs or options.jobs or default_jobs())
            trials = [Trial(order=tuple(order), repeat=repeat) for repeat in repeats]
            records = Runner(writer, engine, progress or Silent()).run(trials)
        return Arm(records=tuple(records), folder=str(folder.with_name(folder.name + PARTIAL)))

    def agree(self, arm: Arm, record: Record, other_arm: Arm, other: Record) -> bool:
        """Whether two records' outputs agree: bit for bit, or within the tolerances asked for."""
        patterns = self.options.outputs
        if outcome_key(record, patterns) == outcome_key(other, patterns):
            return True
        tolerance: Callable[[str], Tolerance] = tolerance_for(self.options.tolerance)
        if record.failure or other.failure or all(rule.exact for rule in self.options.tolerance.values()):
            return False
        ours = {output.name: output for output in select_outputs(record, patterns)}
        theirs = {output.name: output for output in select_outputs(other, patterns)}
        if set(ours) != set(theirs):
            return False
        return all(
            ours[name].digest == theirs[name].digest
            or compare(
                Source.from_object(arm.objects.path(ours[name].digest)),
                Source.from_object(other_arm.objects.path(theirs[name].digest)),
                tolerance(name),
            ).within
            for name in ours
        )

    def subjects(self) -> tuple[str, ...]:
        """The subjects, as given or as the workload imports them; empty where that can't be read."""
        if self.options.imports is not None:
            return self.options.imports
        try:
            return find_subjects(self.target, [self.folder]).subjects
        except UsageError:
            return ()

    def refuse_shadowing(self, place: Place) -> None:
        """Raise `UsageError` when a trial would not take the package from `place`, but from somewhere before it."""
        variables = trial_environment(self.environment, {**self.options.env, **place.env}).variables
        end = run_process(
            [place.python, "-c", _GUARD, self.folder, *place.modules],
            env=variables,
            cwd=Path(self.cwd),
            timeout=_GUARD_SECONDS,
            stop=threading.Event(),
        )
        try:
            found: dict[str, list[str]] = msgspec.json.decode(end.stdout.text)
        except msgspec.DecodeError:
            return  # the interpreter does not even start: the version's own run will say why
        roots = [Path(place.root).resolve(), Path(place.folder).resolve()]
        for name, places in found.items():
            for path in places:
                if not any(Path(path).resolve().is_relative_to(root) for root in roots):
                    raise UsageError(
                        f"trials would take `{name}` from `{path}`, not from the version under test; move the workload "
                        "to a folder without it, or take it off PYTHONPATH"
                    )


def open_workload(
    target: str,
    *,
    cwd: Path,
    environment: Mapping[str, str],
    argv: Sequence[str] = (),
    probes: Sequence[str] = (),
    options: Mapping[str, Any],
) -> Workload:
    """The workload `target` with its options resolved as `check` does. Raises `UsageError`."""
    given = {name: value for name, value in options.items() if value is not None and value != ()}
    place = parse_target(target, cwd)
    path = Path(place.path) if place.path else None
    resolved = merge(layers_for(path, cwd=cwd, environ=environment, command=given))
    place = parse_target(target, cwd, function=resolved.options.workload)
    block = script_block(path) if path else None
    return Workload(
        target=place,
        cwd=str(cwd),
        environment=dict(environment),
        options=resolved.options,
        given=given,
        dependencies=block.dependencies if block else (),
        argv=tuple(argv),
        probes=tuple(probes),
    )


def neutral(record: Record, place: Place) -> Record:
    """The record with the version's own folders written `{env}` and `{package}`, so that versions can be compared."""
    text = msgspec.json.encode(record)
    for path, name in ((place.folder, b"{env}"), (place.root, b"{package}")):
        text = text.replace(path.encode(), name) if path else text
    return msgspec.json.decode(text, type=Record)


def own_order_sequence(record: Record) -> tuple[str, ...]:
    """Top-level modules in the order in which their import began, as far as it was seen; the standard library too."""
    began = [event.name for event in record.events if event.kind == "import" and "." not in event.name]
    listed: list[str] = []
    for snapshot in record.snapshots:
        if snapshot.phase != "t0":
            new = snapshot.kinds.get("modules", {}).get("new", [])
            listed += [name for name in new if isinstance(name, str)]
    return tuple(dict.fromkeys([*began, *listed]))
