"""Rewritten code does what it did: same results, same order of evaluation, same frames."""

from __future__ import annotations

import builtins
import contextlib
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reprocheck.worker.trace.rewrite import HOOKS, Rewriter, hook_name
from tests.unit.trace.conftest import Bench

SOURCES = {
    "calls": """
        def f(*a, **k):
            log.append((a, tuple(k)))
            return len(a)
        result = f(f(1), *[2, f()], x=f(3, 4), **{'y': f()})
    """,
    "operators": """
        a, b = 7, 3
        result = [a / b, (a + b - a * b // b % a ** 2) << 1 | a & b ^ ~a, a >> 1, -a, +b, not a]
        result += [a @ M(2), 'x' + 'y', [1] * 2]
    """,
    "augmented": """
        x = [1]
        y = x
        x += [2]
        n = 1
        n **= 3
        n -= 5
        d = {'k': 1}
        d['k'] += 4
        result = x, y is x, n, d
    """,
    "comprehensions": """
        one = [f(i) + 1 for i in g(3) if h(i)]
        result = one, {i: i * 2 for i in g(2)}, {i for i in g(2)}, sum(i * i for i in g(4))
    """,
    "lambdas": "result = (lambda q: f(q) * 2)(f(3)), list(map(lambda i: -i, g(3)))",
    "generators": """
        def gen():
            got = yield f(1)
            log.append(got)
            yield f(got)
        it = gen()
        result = next(it), it.send(5)
    """,
    "yield-in-arguments": """
        def gen():
            return f((yield 1) + (yield 2))
        it = gen()
        next(it); it.send(10)
        try:
            it.send(20)
        except StopIteration as e:
            result = e.value
    """,
    "exceptions": """
        def bad(x):
            raise KeyError(x)
        found = []
        for n in range(3):
            try:
                f(f(n), bad(f(n)))
            except KeyError as e:
                found.append(e.args)
            found.append(f(f(n)))
        result = found
    """,
    "super": """
        class A:
            def go(self):
                return 1
        class B(A):
            def go(self):
                return super().go() + f(1)
        result = B().go()
    """,
    "closures": """
        def outer(n):
            def inner(m):
                nonlocal n
                n += m
                return n
            return inner
        inner = outer(1)
        result = inner(2), inner(3)
    """,
    "locals": """
        def fn(a):
            b = f(a)
            return sorted(locals())
        result = fn(1)
    """,
    "frames": """
        import sys
        def who():
            return sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno
        def caller():
            return f(1), who()
        result = caller()
    """,
    "decorators": """
        import functools
        @functools.lru_cache(maxsize=None)
        def fn(x: int = f(2)) -> int:
            return f(x) + x
        result = fn(), fn(3)
    """,
    "match": """
        def fn(v):
            match v:
                case {'a': x} if f(x):
                    return f(x) + x
                case _:
                    return f(0)
        result = fn({'a': 4}), fn(3)
    """,
    "walrus": "result = [y for i in g(3) if (y := f(i) * 2)]",
    "strings": """
        x = 3
        result = f'{f(x)!r:>4} {x + 1}', '%s %d' % (x, f(x)), b'%d' % x
    """,
    "starred": "result = [*g(2), *map(f, g(2))], {**{'a': f(1)}}",
    "chained": "result = f(1) < f(2) <= f(3), f(1) if f(0) else f(5), f(1) and f(2) or f(3)",
    "async": """
        import asyncio
        async def one(x):
            return f(x)
        async def main():
            return [await one(i) for i in g(3)] + [await asyncio.gather(one(1), one(2))]
        result = asyncio.run(main())
    """,
    "global": """
        n = 1
        def fn():
            global n
            n += f(2)
        fn()
        result = n
    """,
    "del-and-subscripts": """
        d = {'a': [1, 2]}
        d['a'][f(0)] = f(9)
        del d['a'][f(1)]
        result = d, d['a'][0]
    """,
    "annotations": """
        x: f(1) = f(2)
        y: int
        result = x, __annotations__.keys()
    """,
    "future": """
        from __future__ import annotations
        def fn(a: nope) -> nope:
            return f(a)
        result = fn(1)
    """,
}
HELPERS = """
log = []
def f(*a, **k):
    log.append(("f", a))
    return a[0] if a else 0
def g(n):
    log.append(("g", n))
    return range(n)
def h(i):
    log.append(("h", i))
    return i != 1
class M:
    def __init__(self, n): self.n = n
    def __rmatmul__(self, other): return other * self.n
"""


@contextlib.contextmanager
def plain_hooks() -> Iterator[None]:
    """Hooks that only pass on."""
    import operator

    from reprocheck.worker.trace.rewrite import BINARY, INPLACE, UNARY

    signs = {sign: getattr(operator, name) for sign, name in [*BINARY.values(), *((s, n) for s, n in INPLACE.items())]}
    unary = {sign: getattr(operator, name) for sign, name in UNARY.values()}
    plain: dict[str, Any] = {
        "first": lambda site, function: function,
        "call": lambda site, function: function,
        "given": lambda value, name=None: value,
        "star": lambda values: values,
        "stars": lambda mapping: mapping,
        "end": lambda site, result: result,
        "binary": lambda sign, left, right: signs[sign](left, right),
        "unary": lambda sign, operand: unary[sign](operand),
        "inplace": lambda sign, left, right: signs[sign](left, right),
    }
    before = {name: vars(builtins).get(hook_name(name)) for name in HOOKS}
    for name in HOOKS:
        setattr(builtins, hook_name(name), plain[name])
    try:
        yield
    finally:
        for name, hook in before.items():
            if hook is None:
                delattr(builtins, hook_name(name))
            else:
                setattr(builtins, hook_name(name), hook)


def executed(code: Any) -> tuple[Any, Any]:
    namespace: dict[str, Any] = {"__name__": "case"}
    exec(HELPERS, namespace)
    exec(code, namespace)
    return repr(namespace["result"]), namespace["log"]


@pytest.mark.parametrize("name", SOURCES)
def test_rewritten_code_does_the_same(name: str) -> None:
    source = textwrap.dedent(SOURCES[name])
    rewriter = Rewriter(lambda _: True)

    with plain_hooks():
        rewritten = executed(rewriter.compile(source, f"<{name}>"))

    assert rewritten == executed(compile(source, f"<{name}>", "exec", dont_inherit=True))


def test_functions_get_their_own_code_back(bench: Bench) -> None:
    module = bench.load(
        bench.write("def outer(n):\n    def inner():\n        return abs(n)\n    return inner\nkept = outer(-2)\n")
    )
    before = (module.outer.__code__, module.kept.__code__)
    rewriter = Rewriter(lambda file: file == module.__file__)

    with plain_hooks():
        rewriter.functions()
        assert module.outer.__code__ is not before[0]
        assert module.kept.__code__ is not before[1]
        assert module.kept() == 2
        rewriter.restore()

    assert (module.outer.__code__, module.kept.__code__) == before


def test_what_other_compilers_read_is_left_alone(bench: Bench) -> None:
    module = bench.load(
        bench.write(
            """\
            def jit(f): return f
            class numba:
                njit = staticmethod(lambda **k: lambda f: f)
            @jit
            def one(x): return abs(x)
            @numba.njit(parallel=True)
            def two(x): return abs(x)
            def three(x): return abs(x)
            """
        )
    )
    rewriter = Rewriter(lambda file: file == module.__file__)

    with plain_hooks():
        rewriter.functions()
        names = {name: "__reprocheck_end__" in vars(module)[name].__code__.co_names for name in ("one", "two", "three")}
        rewriter.restore()

    assert names == {"one": False, "two": False, "three": True}


def test_source_that_changed_since(bench: Bench) -> None:
    path = bench.write("def one(x):\n    return abs(x)\n")
    module = bench.load(path)
    path.write_text("x = (", encoding="utf-8")
    before = module.one.__code__

    Rewriter(lambda file: file == module.__file__).functions()

    assert module.one.__code__ is before


def test_no_byte_code_is_written(bench: Bench, tmp_path: Path) -> None:
    bench.trace("def run():\n    return abs(-1)\n", "ops")

    cached = list((tmp_path / "__pycache__").glob("work*.pyc"))
    assert all(b"__reprocheck_end__" not in path.read_bytes() for path in cached)
