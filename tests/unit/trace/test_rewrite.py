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
    "calls": "def f(*a, **k):\n    log.append((a, tuple(k)))\n    return len(a)\nresult = f(f(1), *[2, f()], x=f(3, 4), **{'y': f()})",
    "operators": "a, b = 7, 3\nresult = a / b, (a + b - a * b // b % a ** 2) << 1 | a & b ^ ~a, a >> 1, -a, +b, not a, a @ M(2), 'x' + 'y', [1] * 2",
    "augmented": "x = [1]\ny = x\nx += [2]\nn = 1\nn **= 3\nn -= 5\nd = {'k': 1}\nd['k'] += 4\nresult = x, y is x, n, d",
    "comprehensions": "result = [f(i) + 1 for i in g(3) if h(i)], {i: i * 2 for i in g(2)}, {i for i in g(2)}, sum(i * i for i in g(4))",
    "lambdas": "result = (lambda q: f(q) * 2)(f(3)), list(map(lambda i: -i, g(3)))",
    "generators": "def gen():\n    got = yield f(1)\n    log.append(got)\n    yield f(got)\nit = gen()\nresult = next(it), it.send(5)",
    "yield-in-arguments": "def gen():\n    return f((yield 1) + (yield 2))\nit = gen()\nnext(it); it.send(10)\ntry:\n    it.send(20)\nexcept StopIteration as e:\n    result = e.value",
    "exceptions": "def bad(x):\n    raise KeyError(x)\nfound = []\nfor n in range(3):\n    try:\n        f(f(n), bad(f(n)))\n    except KeyError as e:\n        found.append(e.args)\n    found.append(f(f(n)))\nresult = found",
    "super": "class A:\n    def go(self):\n        return 1\nclass B(A):\n    def go(self):\n        return super().go() + f(1)\nresult = B().go()",
    "closures": "def outer(n):\n    def inner(m):\n        nonlocal n\n        n += m\n        return n\n    return inner\ninner = outer(1)\nresult = inner(2), inner(3)",
    "locals": "def fn(a):\n    b = f(a)\n    return sorted(locals())\nresult = fn(1)",
    "frames": "import sys\ndef who():\n    return sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno\ndef caller():\n    return f(1), who()\nresult = caller()",
    "decorators": "import functools\n@functools.lru_cache(maxsize=None)\ndef fn(x: int = f(2)) -> int:\n    return f(x) + x\nresult = fn(), fn(3)",
    "match": "def fn(v):\n    match v:\n        case {'a': x} if f(x):\n            return f(x) + x\n        case _:\n            return f(0)\nresult = fn({'a': 4}), fn(3)",
    "walrus": "result = [y for i in g(3) if (y := f(i) * 2)]",
    "strings": "x = 3\nresult = f'{f(x)!r:>4} {x + 1}', '%s %d' % (x, f(x)), b'%d' % x",
    "starred": "result = [*g(2), *map(f, g(2))], {**{'a': f(1)}}",
    "chained": "result = f(1) < f(2) <= f(3), f(1) if f(0) else f(5), f(1) and f(2) or f(3)",
    "async": "import asyncio\nasync def one(x):\n    return f(x)\nasync def main():\n    return [await one(i) for i in g(3)] + [await asyncio.gather(one(1), one(2))]\nresult = asyncio.run(main())",
    "global": "n = 1\ndef fn():\n    global n\n    n += f(2)\nfn()\nresult = n",
    "del-and-subscripts": "d = {'a': [1, 2]}\nd['a'][f(0)] = f(9)\ndel d['a'][f(1)]\nresult = d, d['a'][0]",
    "annotations": "x: f(1) = f(2)\ny: int\nresult = x, __annotations__.keys()",
    "future": "from __future__ import annotations\ndef fn(a: nope) -> nope:\n    return f(a)\nresult = fn(1)",
}
PRELUDE = {
    "calls": "",
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
    rewriter = Rewriter(lambda code: True)

    with plain_hooks():
        rewritten = executed(rewriter.compile(source, f"<{name}>"))

    assert rewritten == executed(compile(source, f"<{name}>", "exec", dont_inherit=True))


def test_functions_get_their_own_code_back(bench: Bench) -> None:
    module = bench.load(bench.write("def outer(n):\n    def inner():\n        return abs(n)\n    return inner\nkept = outer(-2)\n"))
    before = (module.outer.__code__, module.kept.__code__)
    rewriter = Rewriter(lambda code: code.co_filename == module.__file__)

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
    rewriter = Rewriter(lambda code: code.co_filename == module.__file__)

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

    Rewriter(lambda code: code.co_filename == module.__file__).functions()

    assert module.one.__code__ is before


def test_no_byte_code_is_written(bench: Bench, tmp_path: Path) -> None:
    bench.trace("def run():\n    return abs(-1)\n", "ops")

    cached = list((tmp_path / "__pycache__").glob("work*.pyc"))
    assert all(b"__reprocheck_end__" not in path.read_bytes() for path in cached)
