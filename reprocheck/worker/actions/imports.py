"""The moments at which the import of any module begins and ends, nested ones included.

Every module that is really loaded passes `importlib._bootstrap._load_unlocked`, in all supported versions. It is
wrapped, which nobody sees in `sys.meta_path`; with no action that asks for such a moment it stays as it is.
"""

import sys

__all__ = ["trace", "watch"]

_state: "dict[str, object]" = {"on": False, "tell": None, "awaited": frozenset(), "trace": None}


def watch(tell, awaited):
    """Call `tell(moment)` at the moments `before:MODULE` and `past:MODULE` in `awaited`."""
    _state["tell"], _state["awaited"] = tell, frozenset(awaited)
    _wrap()


def trace(into):
    """Append `(moment, module)` of every module loaded from now on to the list `into`; None ends that."""
    _state["trace"] = into
    _wrap()


def _wrap():
    if _state["on"]:
        return
    _state["on"] = True
    bootstrap = sys.modules["_frozen_importlib"]
    load = bootstrap._load_unlocked

    def _load_unlocked(spec):
        name = spec.name
        _moment("before", name)
        if name in sys.modules:
            # An action at this moment imported it; loading it once more would make a second module.
            return sys.modules[name]
        try:
            return load(spec)
        finally:
            _moment("past", name)

    bootstrap._load_unlocked = _load_unlocked


def _moment(place, name):
    if _state["trace"] is not None:
        _state["trace"].append((place, name))
    moment = place + ":" + name
    if moment in _state["awaited"]:
        _state["tell"](moment)
