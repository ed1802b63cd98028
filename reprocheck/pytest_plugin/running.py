"""From a test's question to its outcome: the request to the checks' process, and what comes back."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from reprocheck.errors import DivergenceError, HarnessError, UsageError
from reprocheck.pytest_plugin.keywords import asked
from reprocheck.pytest_plugin.outcome import Outcome
from reprocheck.pytest_plugin.state import PREFIX, STATE, State, node_id

__all__ = ["baseline_file", "run_check"]

# Keywords that have an option of the same name on the command line of `reprocheck run`.
_COMMAND = ("orders", "repeat", "max_repeat", "timeout", "seed", "python", "rtol", "atol", "ulp")


def run_check(item: pytest.Item, target: str | dict[str, Any], keywords: Mapping[str, Any]) -> Outcome:
    """Run the check and note it on the test. Raises `UsageError` and `HarnessError`, and skips for want of a GPU."""
    __tracebackhide__ = True
    state = item.config.stash[STATE]
    options = asked(keywords, state.settings, known=_is_known(item))
    imports = options.pop("imports", None)
    use_gpu = options.pop("gpu", False)
    wants_baseline = options.pop("baseline", False)
    if use_gpu:
        _need_gpu(state)
    answer = state.checker.ask(
        "check",
        target=target,
        imports=imports,
        root=str(state.settings.dir / "runs"),
        name=node_id(item),
        slots=state.settings.jobs,
        gpu=use_gpu,
        cwd=str(state.cwd),
        sys_path=state.sys_path(),
        probes=[*_probes(item), *(str(item.path.parent / probe) for probe in options.pop("probes", ()))],
        command=_command(target, imports, options),
        order=options.pop("order", ()),
        argv=options.pop("argv", ()),
        options={**options, "env": _env(item, options)},
    )
    study = _study(answer["run"])
    properties = item.user_properties
    number = sum(1 for name, _ in properties if name == PREFIX + "run") + 1
    arms = [arm for arm in study.orders if not arm.presence and arm.same_as is None]
    properties.append((PREFIX + "verdict", study.verdict))
    properties.append((PREFIX + "orders", f"{len(arms)} orders, {study.noise.trials} runs"))
    properties.append((PREFIX + "run", study.run_dir))
    if item.nodeid != node_id(item):
        properties.append((PREFIX + "test", node_id(item)))
    if answer["skipped"] is not None:
        skip(answer["skipped"] or "skipped in every trial")
    baseline = partial(_baseline, item, study.run_dir, number, _rules(options)) if wants_baseline else _nothing
    return Outcome(study, answer["text"], partial(state.checker.ask, "close", run=study.run_dir), baseline)


def skip(reason: str) -> NoReturn:
    """Skip the test under way, reported at the test's own line, as its marks are."""
    __tracebackhide__ = True
    raise pytest.skip.Exception(reason, _use_item_location=True)


def _is_known(item: pytest.Item) -> bool:
    """Whether an `xfail` mark of the test documents a divergence."""
    expected = [mark.kwargs.get("raises") for mark in item.iter_markers("xfail")]
    return any(raises is DivergenceError or raises == (DivergenceError,) for raises in expected)


def _study(run: str) -> Any:
    import msgspec

    from reprocheck.model import Study

    return msgspec.json.decode((Path(run) / "study.json").read_bytes(), type=Study)


def _nothing() -> None:
    """No baseline was asked for."""


def _need_gpu(state: State) -> None:
    """Skip the test, or fail it if a GPU is required, where no GPU is visible."""
    __tracebackhide__ = True
    from reprocheck.engine.gate import visible_gpus

    if visible_gpus(state.environment):
        return
    if state.settings.require_gpu:
        raise HarnessError("this check needs a GPU, none is visible, and --reprocheck-require-gpu forbids to skip it")
    skip("needs a GPU, and none is visible")


def _env(item: pytest.Item, options: Mapping[str, Any]) -> dict[str, str]:
    env: dict[str, str] = {}
    item.ihook.pytest_reprocheck_env(config=item.config, env=env)
    return {**env, **options.get("env", {})}


def _probes(item: pytest.Item) -> list[str]:
    found = item.ihook.pytest_reprocheck_probes(config=item.config)
    return [str(probe) for probes in found if probes for probe in probes]


def _command(target: str | dict[str, Any], imports: list[str] | None, options: Mapping[str, Any]) -> list[str]:
    """What to type for the same study outside of pytest."""
    words = ["reprocheck", "pytest" if isinstance(target, dict) else "run"]
    if isinstance(target, str):
        words.append(target)
    if imports:
        words += ["--imports", ",".join(imports)]
    for name in _COMMAND:
        if name in options:
            words += [f"--{name.replace('_', '-')}", str(options[name])]
    for name, value in options.get("env", {}).items():
        words += ["--env", f"{name}={value}"]
    if isinstance(target, dict):
        words += ["--", target["text"]]
    return words


def _rules(options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The tolerances of a check by output pattern, as `[tool.reprocheck]` has them."""
    tolerance = options.get("tolerance", {})
    rules = {"*": {"rtol": tolerance}} if isinstance(tolerance, (int, float)) else dict(tolerance)
    rules = {name: rule if isinstance(rule, Mapping) else {"rtol": rule} for name, rule in rules.items()}
    knobs = {name: options[name] for name in ("rtol", "atol", "ulp") if name in options}
    return {**rules, "*": knobs} if knobs else rules


def baseline_file(item: pytest.Item, number: int) -> Path:
    """Where the baseline of a test's check lies: one file a check, in a folder beside the test file."""
    name = node_id(item).partition("::")[2]
    slug = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")
    if slug != name:
        # Two names may read alike now.
        slug = f"{slug[:80]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    if number > 1:
        slug += f"-{number}"
    return item.path.parent / "reprocheck_baselines" / item.path.stem / f"{slug}.json"


def _baseline(item: pytest.Item, run: str, number: int, rules: dict[str, dict[str, Any]]) -> None:
    """Compare with the baseline, or propose one, which the controller writes when the session ends."""
    __tracebackhide__ = True
    state = item.config.stash[STATE]
    file = baseline_file(item, number)
    mode = state.settings.baseline
    ask = partial(state.checker.ask, "baseline", run=run, check=node_id(item), file=str(file), tolerance=rules)
    if mode == "all" or (mode == "new" and not file.exists()):
        state.session.mkdir(parents=True, exist_ok=True)
        proposal = state.session / f"{hashlib.sha256(str(file).encode()).hexdigest()[:32]}.json"
        ask(write=str(proposal))
        # Written last, and whole: the controller goes by these.
        mark = proposal.with_suffix(".tmp")
        mark.write_text(str(file), encoding="utf-8")
        mark.replace(proposal.with_suffix(".path"))
        item.user_properties.append((PREFIX + "baseline", "proposed"))
        return
    if not file.exists():
        command = shlex.join(["python", "-m", "pytest", node_id(item), "--reprocheck-baseline=new"])
        raise UsageError(f"there is no baseline `{file}` yet; create it with: {command}")
    found = ask(write=None)
    item.user_properties.append((PREFIX + "baseline", found["status"]))
    if found["status"] == "differs":
        command = shlex.join(["python", "-m", "pytest", node_id(item), "--reprocheck-baseline=all"])
        count = len(found["differences"])
        told = "1 output differs" if count == 1 else f"{count} outputs differ"
        lines = [f"{told} from the baseline {file.name}", *found["differences"]]
        if found["environment"]:
            lines += ["the environment is another one, so only what must be equal everywhere was compared:"]
            lines += [f"  {line}" for line in found["environment"]]
        raise DivergenceError("\n  ".join([*lines, f"if that is meant: {command}"]))
