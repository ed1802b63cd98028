"""Python modules: how many there are and which top-level ones are new since the last reading."""

import sys

__all__ = ["name", "phases", "read"]

name = "modules"
phases = ("t0", "t1", "t2", "t3")

_seen: set[str] = set()


def read():
    """`count`, and `new`: top-level names in the order in which their import began, our own left out."""
    names = [one for one in list(sys.modules) if isinstance(one, str)]
    new = [one for one in names if "." not in one and one not in _seen and not one.startswith("_reprocheck")]
    _seen.update(new)
    return {"count": sum(not one.startswith("_reprocheck") for one in names), "new": new}
