"""Baselines: what a check gave once, in a small file to be committed, and how a later run differs from it.

A file holds one check: digest, dtype, shape and a few statistics of each output, and the environment they came from.
Bits are compared only within one environment: other processors, libraries or thread counts give other bits by right.
Between environments a baseline is *incomparable*; dtype, shape and, where the check has a tolerance, the statistics
are compared all the same.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from reprocheck.compare.dtypes import DType, lookup
from reprocheck.compare.numbers import part_bits
from reprocheck.compare.source import Source
from reprocheck.errors import UsageError
from reprocheck.explain.state import flatten
from reprocheck.model import Output, Record, Struct, Study, Tolerance
from reprocheck.store.objects import ObjectStore
from reprocheck.store.run import Run

__all__ = ["Baseline", "BaselineOutput", "Comparison", "baseline_of", "compare_baselines", "read_baseline"]

_CHUNK = 1 << 18

# Keys of the last snapshot that can decide about bits.
_FACTS = (
    *("host.machine", "host.cpus", "host.cpu.model", "host.cpu.flags", "host.libc.gnu_libc_version"),
    *("*.version", "*.version.*", "blas.*.config", "blas.*.core", "blas.*.threads", "openmp.*.max_threads"),
    *("*.device.*name", "*.device.*capability", "*.driver_version"),
)


class BaselineOutput(Struct, frozen=True, kw_only=True):
    """One output of the reference order."""

    dtype: str
    shape: tuple[int, ...]
    digest: str
    stats: dict[str, float] = {}
    """`min`, `max`, `mean` and `rms` of the finite values, and how many are `nan` or `inf`; empty for text."""


class Baseline(Struct, frozen=True, kw_only=True):
    """One check's file."""

    schema: Literal["reprocheck/baseline"] = "reprocheck/baseline"
    schema_version: Literal[1] = 1
    check: str
    """The test it belongs to."""
    workload: str
    order: tuple[str, ...]
    reprocheck_version: str
    fingerprint: str
    """Digest of `environment`."""
    environment: dict[str, Any]
    outputs: dict[str, BaselineOutput]


class Comparison(Struct, frozen=True, kw_only=True):
    """A run against its baseline."""

    status: Literal["agrees", "differs", "incomparable"]
    differences: tuple[str, ...] = ()
    """One line an output."""
    environment: tuple[str, ...] = ()
    """What is another in the environment: `host.cpu.model: A, now B`."""


def baseline_of(check: str, study: Study, run: Run) -> Baseline:
    """The baseline that this study would leave, from its reference group's first captured trial."""
    reference = next(group for group in study.groups if group.failure is None)
    records = [record for record in run.records(study.level) if record.ok and record.trial.judged]
    own = [record for record in records if record.effective_order in reference.orders] or records
    record = next((item for item in own if item.snapshots), own[0])
    environment = _environment(record)
    compared = {row.name for row in study.outputs}
    return Baseline(
        check=check,
        workload=study.workload,
        order=record.trial.order,
        reprocheck_version=study.reprocheck_version,
        fingerprint=_digest(environment),
        environment=environment,
        outputs={output.name: _output(output, run.objects) for output in record.outputs if output.name in compared},
    )


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file. Raises `UsageError` naming the file when it isn't one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Baseline)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(
            f"`{path}` is not a baseline that can be read ({error}); delete it and write it anew"
        ) from None


def compare_baselines(now: Baseline, old: Baseline, tolerance_for: Callable[[str], Tolerance]) -> Comparison:
    """How the outputs differ from those of `old`.

    In the same environment bits must be equal or, where the tolerance isn't exact, the statistics within it.
    """
    same = now.fingerprint == old.fingerprint
    differences = []
    for name in dict.fromkeys([*old.outputs, *now.outputs]):
        ours, theirs = now.outputs.get(name), old.outputs.get(name)
        if ours is None or theirs is None:
            differences.append(f"{name}: {'is new' if theirs is None else 'is gone'}")
            continue
        text = _difference(ours, theirs, tolerance_for(name), bits=same)
        if text:
            differences.append(f"{name}: {text}")
    changed = [
        f"{key}: {old.environment.get(key, 'absent')}, now {now.environment.get(key, 'absent')}"
        for key in dict.fromkeys([*old.environment, *now.environment])
        if old.environment.get(key) != now.environment.get(key)
    ]
    status: Literal["agrees", "differs", "incomparable"] = "agrees" if same else "incomparable"
    return Comparison(
        status="differs" if differences else status, differences=tuple(differences), environment=tuple(changed)
    )


def _difference(ours: BaselineOutput, theirs: BaselineOutput, tolerance: Tolerance, *, bits: bool) -> str:
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return f"{ours.dtype}{list(ours.shape)}, was {theirs.dtype}{list(theirs.shape)}"
    if ours.digest == theirs.digest or (tolerance.exact and not bits):
        return ""
    apart = [
        f"{key} {ours.stats.get(key):.9g}, was {value:.9g}"
        for key, value in theirs.stats.items()
        if not _close(ours.stats.get(key, math.nan), value, key, ours.dtype, tolerance)
    ]
    if apart:
        return "; ".join(apart)
    return "other bits, with equal statistics" if tolerance.exact else ""


def _close(ours: float, theirs: float, key: str, dtype: str, tolerance: Tolerance) -> bool:
    if key in ("nan", "inf"):
        return ours == theirs
    known = lookup(dtype)
    # A unit in the last place, as a relative distance.
    ulp = tolerance.ulp * 2.0**-known.form.mantissa if known is not None and known.form is not None else 0.0
    return abs(ours - theirs) <= tolerance.atol + max(tolerance.rtol, ulp) * abs(theirs)


def _environment(record: Record) -> dict[str, Any]:
    last = flatten(record.snapshots[-1].kinds) if record.snapshots else {}
    facts = {"python": record.python.get("version", "")}
    facts.update(
        (key, value) for key, value in sorted(last.items()) if any(fnmatchcase(key, pattern) for pattern in _FACTS)
    )
    return facts


def _digest(environment: Mapping[str, Any]) -> str:
    return "sha256:" + hashlib.sha256(msgspec.json.encode(environment, order="sorted")).hexdigest()


def _output(output: Output, objects: ObjectStore) -> BaselineOutput:
    source = Source.from_object(objects.path(output.digest))
    return BaselineOutput(dtype=output.dtype, shape=output.shape, digest=output.digest, stats=_statistics(source))


def _statistics(source: Source) -> dict[str, float]:
    """Chunk by chunk, in float64, always in the same sequence; every number is finite."""
    if source.dtype.kind not in ("float", "integer") or not source.size:
        return {}
    reader = source.open()
    low, high, total, squares = math.inf, -math.inf, 0.0, 0.0
    finite = nan = inf = 0
    for start in range(0, source.size, _CHUNK):
        stop = min(source.size, start + _CHUNK)
        values = _values(source.dtype, reader.read(start, stop).reshape(stop - start, -1))
        if values is None:
            return {}
        nan += int(np.isnan(values).sum())
        inf += int(np.isinf(values).sum())
        values = values[np.isfinite(values)]
        if values.size:
            finite += values.size
            low, high = min(low, float(values.min())), max(high, float(values.max()))
            total += math.fsum(values)
            with np.errstate(over="ignore"):
                squares += float(np.square(values).sum())
        reader.release(stop)
    found: dict[str, float] = {"nan": nan, "inf": inf}
    if finite:
        found |= {"min": low, "max": high, "mean": total / finite, "rms": math.sqrt(squares / finite)}
    return {key: value for key, value in found.items() if math.isfinite(value)}


def _values(dtype: DType, rows: NDArray[np.uint8]) -> NDArray[np.float64] | None:
    """Elements as float64, complex ones part by part."""
    if dtype.kind == "integer":
        return rows.view(f"{'i' if dtype.signed else 'u'}{dtype.itemsize}").astype(np.float64)
    if dtype.form is None:
        return None
    decoded = dtype.form.decode(part_bits(dtype, rows))
    return None if decoded is None else decoded.astype(np.float64).reshape(-1)
