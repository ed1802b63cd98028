"""Arrays and numbers inside a variable: which values of which library a trace looks at, and under which names."""

import sys

__all__ = ["leaves", "library", "state_of"]

MAX_LEAVES = 256
MAX_DEPTH = 4
_NUMBERS = (float, int, complex, bool)

_known: dict[type, object] = {}


def library(value):
    """`torch`, `numpy` or `cupy` for an array, tensor or array scalar of it, `number` for Python's, else None."""
    kind = type(value)
    found = _known.get(kind, "")
    if found == "":
        found = _known[kind] = _library(kind)
    return found


def _library(kind):
    if kind in _NUMBERS:
        return "number"
    for name, base in (("torch", "Tensor"), ("numpy", "ndarray"), ("numpy", "generic"), ("cupy", "ndarray")):
        there = getattr(sys.modules.get(name), base, None)
        if isinstance(there, type) and issubclass(kind, there):
            return name
    return None


def leaves(name, value):
    """`[(path, leaf)]` of the arrays and numbers in `value`, a container or a leaf: `a`, `a[0]`, `a.key`."""
    found = []
    _walk(name, value, 0, found)
    return found


def _walk(name, value, depth, found):
    if len(found) >= MAX_LEAVES or depth > MAX_DEPTH:
        return
    if library(value) is not None:
        found.append((name, value))
    elif isinstance(value, dict):
        for key, item in list(value.items()):
            _walk("%s.%s" % (name, key) if isinstance(key, str) else "%s[%r]" % (name, key), item, depth + 1, found)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _walk("%s[%d]" % (name, index), item, depth + 1, found)
    elif depth == 0:
        found += state_of(name, value)


def state_of(name, value):
    """`[(path, tensor)]` of a torch module's parameters, buffers and gradients, or of what an optimiser steps."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return []
    if isinstance(value, torch.nn.Module):
        found = []
        for path, parameter in value.named_parameters():
            found.append(("%s.%s" % (name, path), parameter))
            if parameter.grad is not None:
                found.append(("%s.%s.grad" % (name, path), parameter.grad))
        return found + [("%s.%s" % (name, path), buffer) for path, buffer in value.named_buffers()]
    if isinstance(value, getattr(getattr(torch, "optim", None), "Optimizer", ())):
        groups = [group["params"] for group in value.param_groups]
        return [
            ("%s.param_groups[%d].params[%d]" % (name, number, index), parameter)
            for number, group in enumerate(groups)
            for index, parameter in enumerate(group)
        ]
    return []
