# The worker has no annotations: it runs on interpreters that would have to load `typing` for them.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import functools
import math
import os
import random
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from reprocheck.worker.snapshot import patches


def replacement(*_: Any) -> float:
    return 0.0


def test_nothing_is_replaced_in_a_fresh_standard_library() -> None:
    for module in (math, random, os):
        assert patches.foreign(module, module.__name__) == {}


def test_a_replaced_function_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(math, "exp", replacement)
    found = patches.read()
    line = replacement.__code__.co_firstlineno
    assert found["math.exp"] == f"{__name__}.replacement ({__file__}:{line})"


def test_wraps_does_not_hide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    original = random.random

    @functools.wraps(original)
    def wrapper() -> float:
        return original()

    assert wrapper.__module__ != __name__
    monkeypatch.setattr(random, "random", wrapper)
    assert __file__ in patches.read()["random.random"]


def _lambda() -> Any:
    return lambda value: value


def _partial() -> Any:
    return functools.partial(replacement, 1)


def _cached() -> Any:
    return functools.lru_cache(replacement)


def _method() -> Any:
    return Thing().method


def _instance() -> Any:
    return Thing()


class Thing:
    def method(self) -> None:
        pass

    def __call__(self) -> None:
        pass


@pytest.mark.parametrize("make", [_lambda, _partial, _cached, _method, _instance, lambda: Thing])
def test_every_kind_of_callable(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any]) -> None:
    monkeypatch.setattr(math, "sin", make())
    assert "math.sin" in patches.read()


def test_a_function_in_anothers_place_changes_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = patches.read()
    monkeypatch.setattr(math, "exp", math.sin)
    after = patches.read()
    assert "math.exp" not in after
    assert after["digest.math"] != before["digest.math"]


def test_the_digest_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = patches.read()["digest.os"]
    with monkeypatch.context() as context:
        context.setattr(os, "getcwd", replacement)
        assert patches.read()["digest.os"] != before
    assert patches.read()["digest.os"] == before


def test_builtins_import_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def importing(*arguments: Any, **named: Any) -> Any:
        return real(*arguments, **named)

    monkeypatch.setattr(builtins, "__import__", importing)
    assert "builtins.__import__" in patches.read()


def test_lazy_objects_are_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    monkeypatch.setitem(vars(math), "lazy", Lazy("lazy"))
    assert "math.lazy" not in patches.read()


def test_a_package_may_change_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """What torch does with `compile` and `manual_seed` on first use."""
    source = tmp_path / "random_like" / "__init__.py"
    source.parent.mkdir()
    source.write_text("def first(): pass\ndef second(): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import importlib

    module = importlib.import_module("random_like")
    monkeypatch.setitem(sys.modules, "random_like", module)
    assert patches.foreign(module, "random_like") == {}
    vars(module)["first"] = vars(module)["second"]
    assert patches.foreign(module, "random_like") == {}
    vars(module)["first"] = replacement
    assert list(patches.foreign(module, "random_like")) == ["first"]
