"""The functions behind `rewrite.HOOKS`: what rewritten code calls.

Each begins with a test that a compiler (`torch.compile`) folds away, so that compiled graphs are what they would be
without it: https://docs.pytorch.org/docs/stable/generated/torch.compiler.is_compiling.html. That is why they have a
file of their own: torch's compiler is told to skip the other files of the trace, and to trace through this one.
"""

import operator
import sys

from .rewrite import BINARY, INPLACE, UNARY

__all__ = ["functions"]

_SIGNS = {sign: getattr(operator, name) for sign, name in BINARY.values()}
_SIGNS.update({sign: getattr(operator, name) for sign, name in INPLACE.items()})
_UNARY = {sign: getattr(operator, name) for sign, name in UNARY.values()}


def functions(trace):
    """The hooks that report to a `calls.CallTrace`, in the order of `rewrite.HOOKS`."""
    torch = sys.modules.get("torch")
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or bool
    here = sys._getframe

    def first(site, function):
        if not compiling():
            trace.begin(here(1), site, function, True)
        return function

    def call(site, function):
        if not compiling():
            trace.begin(here(1), site, function, False)
        return function

    def given(value, name=None):
        if not compiling():
            trace.argument(here(1), value, name)
        return value

    def star(values_):
        if compiling():
            return values_
        values_ = tuple(values_)
        for value in values_:
            trace.argument(here(1), value, None)
        return values_

    def stars(mapping):
        if not compiling():
            for name in mapping.keys():  # noqa: SIM118 - any mapping will do
                trace.argument(here(1), mapping[name], name)
        return mapping

    def end(site, result):
        if not compiling():
            trace.finish(here(1), site, result)
        return result

    def binary(sign, left, right):
        if compiling():
            return _SIGNS[sign](left, right)
        return trace.operation(here(1), sign, _SIGNS[sign], (left, right))

    def unary(sign, operand):
        if compiling():
            return _UNARY[sign](operand)
        return trace.operation(here(1), "unary " + sign, _UNARY[sign], (operand,))

    return first, call, given, star, stars, end, binary, unary, binary
