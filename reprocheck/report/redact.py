"""Reports that may leave the company: paths shortened, values and source left out, names hashed if that is asked for.

A study and its records are rewritten before anything is rendered, so every format is redacted alike. What stays are
numbers: shapes, counts, distances, versions, and the settings of numerical libraries.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from reprocheck.headline import headline
from reprocheck.model import (
    DifferingTest,
    Event,
    Factors,
    Failure,
    FirstLine,
    OperatorOrigin,
    Record,
    Stream,
    Struct,
    Study,
    Target,
)
from reprocheck.plan.varied import DEVICE
from reprocheck.store.run import Run

__all__ = ["HIDDEN", "Redaction", "Redactions", "keeps_value"]

S = TypeVar("S", bound=msgspec.Struct)

HIDDEN = "(redacted)"

# Variables that only numerical libraries and the loader read. What is not among them is shown without its value.
_VARIABLES = (
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "NUMEXPR_", "NUMBA_NUM_", "NPY_", "ATEN_"),
    *("ONEDNN_", "DNNL_", "CUBLAS", "CUDNN_", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING"),
    *("CUPY_TF32", "CUPY_ACCELERATORS", "NVIDIA_TF32", "NCCL_ALGO", "PYTHONHASHSEED", "MALLOC_", "TBB_"),
)
_SECRET = ("SECRET", "TOKEN", "PASS", "CREDENTIAL", "AUTH", "APIKEY", "_KEY", "_PATH", "_DIR", "_FILE")

# Packages whose names say nothing about their user.
_PUBLIC = frozenset(
    {
        *sys.stdlib_module_names,
        *("numpy", "scipy", "torch", "torchvision", "torchaudio", "triton", "cupy", "cupyx", "cupy_backends", "mkl"),
        *("jax", "jaxlib", "tensorflow", "keras", "sklearn", "pandas", "numba", "llvmlite", "pyarrow", "cudf", "cuml"),
        *("numexpr", "cv2", "PIL", "matplotlib", "sympy", "mpmath", "networkx", "pytest", "reprocheck", "nvidia"),
        *("cuda", "onnxruntime", "transformers", "lightning", "xgboost", "lightgbm", "threadpoolctl", "setuptools"),
        *("numpy.libs", "scipy.libs", "mkl_fft", "mkl_random", "ml_dtypes", "tbb", "yaml", "packaging"),
    }
)

# Where operators come from that everybody has.
_OPERATORS = ("aten", "prims", "prim", "mkldnn", "onednn", "quantized", "c10d", "profiler", "inductor", *_PUBLIC)

# Kinds of state whose keys are a fixed vocabulary.
_PLAIN_KINDS = ("fp", "torch", "numpy", "cupy", "openmp", "blas", "process", "cuda", "gpu", "host", "modules")

# Fields that are structure, not content; `why` comes from the table of keys.
_STRUCTURE = frozenset(
    {
        *("schema", "verdict", "kind", "status", "method", "observer", "dtype", "other_dtype", "severity", "why"),
        *("group", "groups", "id", "digest", "trace", "record", "reprocheck_version", "started", "isolation"),
    }
)

_ABSOLUTE = re.compile(r"(?<!\w)(?<!\.\.)(?<!…)/(?:[^\s/'\"`:;,()\[\]{}<>|=]+/+)*[^\s/'\"`:;,()\[\]{}<>|=]*")
_RELATIVE = re.compile(
    r"(?<![\w…/.-])(?:\.{1,2}/|[\w.@+-]+/)+([\w.@+-]+\.(?:py|pyx|toml|cfg|ini|ipynb|json|npz|npy|so))\b"
)
_WHOLE = re.compile(r"/[^\n:,'\"`]*")
_ROOT = "\ue000"
"""Stands for a folder that was cut off, until the path it begins is shortened."""
_PUBLIC_TAIL = re.compile(r".*/(?:site-packages|dist-packages|lib-dynload)/|.*/lib/python3\.\d+/")


def keeps_value(variable: str) -> bool:
    """Whether a variable's value may be shown in a redacted report."""
    upper = variable.upper()
    return upper.startswith(_VARIABLES) and not any(word in upper for word in _SECRET)


class Redaction:
    """What is taken out of one study, and of its records; the same thing is always replaced by the same."""

    def __init__(
        self, study: Study, *, names: bool = False, roots: Iterable[str] = (), salt: bytes | None = None
    ) -> None:
        """With `names`, names of files, variables and modules that aren't public become hashes under `salt` (random).

        `roots` are further folders whose very names must not be seen.
        """
        self._hash = names
        self._salt = salt or secrets.token_bytes(16)
        self._roots = _roots(study, roots)
        self._values = _hidden_values(study)
        self._names: dict[str, str] = {}
        if names:
            self._learn(study)
        else:
            self._shorten(study.target)
        for machine in study.machines:
            private = {machine.host, *machine.gpus} - _PUBLIC - {""}
            self._names.update({name: self._token("machine", name) for name in private})
        self._pattern = _alternatives(self._names)

    def study(self, study: Study) -> Study:
        """The study without what must stay at home; its sentences are made anew from what is left."""
        environment = dict(study.environment)
        for part in ("pinned", "changed"):
            values = environment.get(part)
            if isinstance(values, dict):
                environment[part] = {
                    name: value if keeps_value(name) or value == "removed" else HIDDEN for name, value in values.items()
                }
        prepared = msgspec.structs.replace(
            study,
            environment=environment,
            factors=_numbered(study.factors) if study.factors is not None else None,
            command=(),
            run_dir="",
            reproducer=None,
        )
        redacted: Study = self._walk(prepared)
        words = tuple(_without_values(study.command))
        command = words[:2] + tuple(self.text(word) for word in words[2:])
        redacted = msgspec.structs.replace(redacted, command=command)
        return msgspec.structs.replace(redacted, headline=headline(redacted))

    def record(self, record: Record) -> Record:
        """A record of that study; what it printed is left out."""
        nothing = Stream(text="", nbytes=0)
        redacted: Record = self._walk(msgspec.structs.replace(record, stdout=nothing, stderr=nothing, python={}))
        return redacted

    def text(self, text: str) -> str:
        """Any text with paths shortened, hidden values gone and, if asked for, names hashed."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        for root in self._roots:
            text = text.replace(root, f"/{_ROOT}")
        text = text.replace("file://", "")
        # A text that is nothing but a path may have spaces in it.
        text = _WHOLE.sub(self._path, text) if _WHOLE.fullmatch(text) else _ABSOLUTE.sub(self._path, text)
        text = _RELATIVE.sub(self._relative, text).replace(_ROOT, "…")
        if self._hash and ".so" in text:
            text = _LIBRARY.sub(lambda found: self._library(found[0]), text)
        if self._pattern is not None:
            text = self._pattern.sub(lambda found: self._names[found[0]], text)
        return text

    def _path(self, found: re.Match[str]) -> str:
        path = found[0]
        if path in ("/", "//"):
            return path
        public = _PUBLIC_TAIL.match(path)
        tail = path[public.end() :] if public else ""
        if tail and (not self._hash or tail.partition("/")[0].removesuffix(".py") in _PUBLIC):
            return f"…/{tail}"
        name = path.rstrip("/").rpartition("/")[2]
        return f"…/{self._file(name)}" if name != _ROOT else "…"

    def _relative(self, found: re.Match[str]) -> str:
        return found[0] if found[0].partition("/")[0] in _PUBLIC else self._file(found[1])

    def _file(self, name: str) -> str:
        """The name of a file: libraries keep theirs, other files are hashed if names are."""
        if not self._hash or name in ("python", "__init__.py", "conftest.py", "pyproject.toml"):
            return name
        if name.startswith("python") or name.removesuffix(".py") in _PUBLIC:
            return name
        if ".so" in name:
            return self._library(name)
        dot = name.rpartition(".")
        return self._token("file", name) + (f".{dot[2]}" if dot[1] and len(dot[2]) <= 5 else "")

    def _library(self, name: str) -> str:
        """The name of a native library: those that are known the world over keep theirs."""
        known = _PUBLIC_LIBRARY.fullmatch(name) or name.partition(".")[0].lstrip("_") in _PUBLIC
        return name if known else self._token("lib", name) + ".so"

    def _token(self, kind: str, text: str) -> str:
        return f"{kind}-{hashlib.blake2s(text.encode('utf-8', 'replace'), key=self._salt, digest_size=4).hexdigest()}"

    def module(self, name: str) -> str:
        """A dotted name: hashed, if names are and it isn't of a public package."""
        return self._module(name) if self._hash and name else name

    def _module(self, name: str) -> str:
        return name if name.partition(".")[0] in _PUBLIC else self._token("module", name)

    def _learn(self, study: Study) -> None:
        """Collect the names that are to be hashed wherever they occur."""
        for output in study.outputs:
            self._names[output.name] = self._token("output", output.name)
        for item in study.not_compared:
            self._names.setdefault(item.name, self._token("output", item.name))
        for module in (*study.subjects, study.target.module or ""):
            if module and self._module(module) != module:
                self._names[module] = self._module(module)
        if study.target.name:
            # Alone it may be any word (`run`); what it is shows where it follows a colon.
            for part in study.target.name.partition("[")[0].split("::"):
                self._names[f":{part}"] = ":" + self._token("name", part)
        if study.target.path:
            file = Path(study.target.path)
            self._names.setdefault(file.name, self._file(file.name))
            self._names.setdefault(file.stem, self._file(file.name).removesuffix(".py"))
        self._shorten(study.target)
        operators = [study.origin.operator, study.origin.other_operator or ""] if study.origin is not None else []
        operators += [name or "" for item in study.unaligned for name in (item.operator, item.other)]
        for operator in (*operators, *(item.operator for item in study.kernels)):
            if operator and operator.partition(".")[0] not in _OPERATORS:
                self._names.setdefault(operator, self._token("operator", operator))
        if study.suite is not None:
            for test in (*(item.test for item in study.suite.differing), *study.suite.failing):
                self._names.setdefault(test, self._token("test", test))
        self._names.pop("", None)

    def _shorten(self, target: Target) -> None:
        """A workload that was named by a folder goes by that folder's name alone."""
        path = target.text.partition("::")[0]
        if "/" in path and target.kind in ("function", "script"):
            self._names.setdefault(path, self._file(path.rstrip("/").rpartition("/")[2]))

    def _walk(self, value: Any, field: str = "") -> Any:
        if isinstance(value, msgspec.Struct):
            return self._struct(value)
        if isinstance(value, str):
            return value if field in _STRUCTURE else self.text(value)
        if isinstance(value, (list, tuple)):
            return type(value)([self._walk(item, field) for item in value])
        if isinstance(value, dict):
            return {self._key(key, field): self._walk(item, field) for key, item in value.items()}
        return value

    def _key(self, key: str, field: str) -> str:
        return self._state_key(key) if field == "kinds" else self.text(key)

    def _struct(self, value: S) -> S:
        if isinstance(value, Failure):
            # Of a process that left by itself, what it printed is kept there.
            frames = None if value.kind == "exit" else _frames(value.traceback)
            value = msgspec.structs.replace(value, traceback=frames)
        if isinstance(value, DifferingTest):
            value = msgspec.structs.replace(value, failure=HIDDEN if value.failure else "")
        if isinstance(value, (FirstLine, OperatorOrigin)):
            value = self._place(value)
        changed: dict[str, Any] = {}
        for name in value.__struct_fields__:
            item = getattr(value, name)
            if name == "module" and isinstance(item, str) and self._hash:
                changed[name] = self._module(item)
            elif name == "name" and isinstance(value, Target) and item and self._hash:
                changed[name] = "::".join(self._token("name", part) for part in item.partition("[")[0].split("::"))
            elif name == "name" and isinstance(value, Event) and value.kind == "import" and self._hash:
                changed[name] = self._module(item)
            elif name == "kinds":
                changed[name] = {kind: self._kind(kind, keys) for kind, keys in item.items()}
            elif name == "key" and isinstance(item, str):
                changed[name] = self._state_key(item)
            elif name in ("first_values", "worst_values", "first_hex") and item and _textual(value):
                changed[name] = (HIDDEN, HIDDEN)
            elif name not in _STRUCTURE or not isinstance(item, str):
                changed[name] = self._walk(item, name)
        if isinstance(value, Struct) and "key" in changed:
            changed |= self._environment(value, changed)
        return msgspec.structs.replace(value, **changed)

    def _place(self, value: S) -> S:
        """A line or operator without its source, which its sentence quotes too; the variable's name as names are."""
        source, text = getattr(value, "source", ""), getattr(value, "text", "")
        if source:
            text = text.replace(f": `{source}`", "").replace(f"`{source}`", HIDDEN).replace(source, HIDDEN)
        changed = {"source": "", "text": text}
        variable = getattr(value, "variable", "")
        if variable and self._hash:
            changed["variable"] = self._token("output", variable)
            changed["text"] = text.replace(f"`{variable}`", f"`{changed['variable']}`")
        if getattr(value, "function", "") and self._hash:
            changed["function"] = self._token("name", getattr(value, "function", ""))
        return msgspec.structs.replace(value, **changed)

    def _kind(self, kind: str, keys: dict[str, Any]) -> dict[str, Any]:
        found = {}
        for key, value in keys.items():
            hidden = kind == "environ" and isinstance(value, str) and value != "absent" and not _shown(key)
            name = self._state_key(f"{kind}.{key}").partition(".")[2]
            found[name] = HIDDEN if hidden else self._walk(value)
        return found

    def _environment(self, value: Any, changed: dict[str, Any]) -> dict[str, Any]:
        """A difference or a cause that is about a variable keeps values only where `keeps_value` says so."""
        if not value.key.startswith("environ.") or _shown(value.key):
            return {}
        found: dict[str, Any] = {
            name: HIDDEN for name in ("good", "bad") if isinstance(getattr(value, name, None), str)
        }
        if "changes" in changed:
            found["changes"] = tuple(
                msgspec.structs.replace(
                    change,
                    value=change.value if change.value == "absent" else HIDDEN,
                    event=None if change.event is None else msgspec.structs.replace(change.event, value=HIDDEN),
                )
                for change in changed["changes"]
            )
        return found

    def _state_key(self, key: str) -> str:
        kind, _, rest = key.partition(".")
        if not self._hash or kind in _PLAIN_KINDS or kind == "environ":
            return self.text(key)
        label = re.sub(r"^(?:digest|binding|family|scope|duplicate|soname)\.", "", rest)
        top = re.split(r"[./]", label)[0]
        known = top in _PUBLIC or label.startswith("lib") or not re.search(r"[./]", label)
        return self.text(key) if known else f"{kind}.{self._token('key', rest)}"


class Redactions:
    """Redactions of several studies, which replace the same names by the same hashes."""

    def __init__(self, *, names: bool = False) -> None:
        """`names` as for `Redaction`."""
        self._names = names
        self._salt = secrets.token_bytes(16)

    def of(self, study: Study, folder: Path | None = None) -> Redaction:
        """The redaction of a study and of its run folder."""
        roots = []
        if folder is not None:
            roots = [str(folder.absolute()), Run(folder).spec.cwd]
        return Redaction(study, names=self._names, roots=roots, salt=self._salt)


_LIBRARY = re.compile(r"(?<![\w.-])lib[\w+-]+\.so[\w.]*|(?<![\w.-])[\w-]+\.(?:cpython|abi3)[\w.-]*\.so\b")
_PUBLIC_LIBRARY = re.compile(
    r"lib(?:c|m|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s|gfortran|quadmath|z|bz2|lzma|ffi|ssl|crypto|uuid|numa|tbb\w*"
    r"|gomp|iomp5|omp|mkl_\w+|svml|imf|intlc|irng|openblas\w*|scipy_openblas\w*|blas|lapack\w*|blis|flexiblas|atlas"
    r"|fftw3\w*|cu\w+|nv\w+|nccl|torch\w*|c10\w*|caffe2\w*|shm|python3[\d.]*|dnnl|hip\w*|roc\w*|sqlite3|expat"
    r"|jemalloc|tcmalloc\w*|mimalloc|arrow\w*|protobuf\w*|xla\w*|tensorflow\w*)(?:-[\w-]+)?\.so[\w.]*"
)


def _textual(value: Any) -> bool:
    return getattr(value, "dtype", "") in ("str", "bytes", "int", "none") or str(
        getattr(value, "dtype", "")
    ).startswith(("<U", "|S", "S", "U"))


def _shown(key: str) -> bool:
    return keeps_value(key.rpartition(".")[2])


def _frames(traceback: str | None) -> str | None:
    """A traceback without its source lines: where, and what was raised."""
    if traceback is None:
        return None
    lines = [line for line in traceback.splitlines() if not re.match(r"(?: {3,}|\t|>|E )", line)]
    return "\n".join(lines)


def _without_values(command: Iterable[str]) -> Iterable[str]:
    """The words of a command line, variables without values that must not be seen."""
    after = place = False
    for word in command:
        if place or word.startswith(_PLACES_SET):
            yield HIDDEN if place else f"{word.partition('=')[0]}={HIDDEN}"
            place = False
            continue
        place = word in _PLACES
        head = next((start for start in ("--env=", "--vary=") if word.startswith(start)), "")
        name, equals, _ = word.removeprefix(head).partition("=")
        hide = (after or head) and equals and not keeps_value(name)
        yield f"{head}{name}={HIDDEN}" if hide else word
        after = word in ("--env", "--vary")


def _numbered(factors: Factors) -> Factors:
    """Factors whose values may not be shown have them numbered: levels stay apart, in sentences too."""
    hidden = {
        factor.name: {value: f"value {number}" for number, value in enumerate(factor.values, 1) if value is not None}
        for factor in factors.factors
        if factor.name != DEVICE and not keeps_value(factor.variable)
    }
    by_variable = {factor.variable: hidden[factor.name] for factor in factors.factors if factor.name in hidden}

    def text(told: str) -> str:
        for name, numbers in hidden.items():
            for value, number in numbers.items():
                told = told.replace(f"`{name}={value}`", f"`{name}={number}`")
        return told

    def shown(variable: str, value: str | None) -> str | None:
        return None if value is None else by_variable.get(variable, {}).get(value, value)

    return msgspec.structs.replace(
        factors,
        sentence=text(factors.sentence),
        factors=tuple(
            msgspec.structs.replace(
                factor,
                values=tuple(shown(factor.variable, value) for value in factor.values),
                changing=tuple(shown(factor.variable, value) for value in factor.changing),
                sentence=text(factor.sentence),
            )
            for factor in factors.factors
        ),
        levels=tuple(
            msgspec.structs.replace(
                level,
                text=text(level.text),
                setting={name: shown(name, value) for name, value in level.setting.items()},
            )
            for level in factors.levels
        ),
    )


_PLACES = ("--scheduler", "--workers")
_PLACES_SET = tuple(f"{option}=" for option in _PLACES)


def _hidden_values(study: Study) -> list[str]:
    """Values of variables that were set for the trials and may not be shown, wherever else they turn up."""
    changed = study.environment.get("changed")
    found = []
    for name, value in (changed if isinstance(changed, dict) else {}).items():
        if not keeps_value(name) and isinstance(value, str) and len(value) > 3 and value != "removed":
            found.append(value)
    for factor in study.factors.factors if study.factors is not None else ():
        if factor.name != DEVICE and not keeps_value(factor.variable):
            found += [value for value in factor.values if value is not None and len(value) > 3]
    return sorted(found, key=len, reverse=True)


def _roots(study: Study, more: Iterable[str]) -> list[str]:
    """Folders to cut off wherever they begin a path, longest first.

    Where a path with spaces ends, no regular expression can tell.
    """
    target: Target = study.target
    python = study.environment.get("python")
    starts = [Path(place).parent for place in (target.path, study.run_dir, python) if isinstance(place, str) and place]
    starts += [Path(place) for place in (*more, str(Path.home()), str(Path.cwd()))]
    found = set()
    for start in starts:
        for folder in (start, *start.parents):
            # `/home` says nothing, and `/` is in everything.
            if len(folder.parts) > 2 and not _PUBLIC_TAIL.search(f"{folder}/"):
                found.add(str(folder))
    return sorted(found, key=len, reverse=True)


def _alternatives(names: dict[str, str]) -> re.Pattern[str] | None:
    # A name of one or two letters is no secret, but half of all words: it is replaced where it stands in backticks or
    # alone.
    if not names:
        return None
    words = sorted(names, key=len, reverse=True)
    after = "|".join(re.escape(word) for word in words if word[0] == ":")
    words = [word for word in words if word[0] != ":"]
    long = "|".join(re.escape(word) for word in words if len(word) > 2)
    short = "|".join(re.escape(word) for word in words if len(word) <= 2)
    parts = [rf"(?<![\w-])(?:{long})(?!\w)"] if long else []
    if after:
        parts.append(rf"(?:{after})(?!\w)")
    if short:
        parts.append(rf"(?:\A|(?<=[`,]))(?:{short})(?=[`,]|\Z)")
    return re.compile("|".join(parts))
