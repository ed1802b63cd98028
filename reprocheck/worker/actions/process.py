"""Environment variables, in Python's view and C's, or in C's alone."""

import os
import posix

from ..snapshot import environ

__all__ = ["env"]


def env(action, _):
    """Give `name` the value `value` (None removes it); with `where` = `c`, leave `os.environ` as it is."""
    name, value = action["name"], action["value"]
    in_c = action.get("where") == "c"
    before = environ.in_c().get(name) if in_c else os.environ.get(name)
    if before != value or in_c:
        if value is None:
            posix.unsetenv(os.fsencode(name))
            if not in_c:
                os.environ.pop(name, None)
        elif in_c:
            posix.putenv(os.fsencode(name), os.fsencode(value))
        else:
            os.environ[name] = value
    after = environ.in_c().get(name)
    return {
        "was": "absent" if before is None else environ.shown(name, before),
        "now": "absent" if after is None else environ.shown(name, after),
        "ok": after == value,
    }
