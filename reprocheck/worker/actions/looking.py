"""Actions that change nothing by themselves: they import, and they look closer than a snapshot does."""

import sys

from . import imports

__all__ = ["import_", "look", "watch"]


def import_(action, _):
    """Import the module `name`. Where that raises, the subject's own turn comes later and raises again."""
    name = action["name"]
    already = name in sys.modules
    __import__(name)
    return {"was": "loaded" if already else "not loaded"}


def look(action, _):
    """What the named `readers` of snapshots (`patches`, …) say at this moment: kind -> key -> value."""
    package = __name__.rpartition(".")[0].rpartition(".")[0] + ".snapshot."
    kinds = {}
    for name in action["readers"]:
        __import__(package + name)
        module = sys.modules[package + name]
        kinds.setdefault(module.name, {}).update(module.read())
    return {"kinds": kinds}


def watch(action, actions):
    """`begin` to note the imports that begin and end; at the `end`, tell `[place, module, file]` of each."""
    kept = actions.kept_by("watch")
    if action["mode"] == "begin":
        kept["seen"] = []
        imports.trace(kept["seen"])
        return {}
    imports.trace(None)
    own = __name__.partition(".")[0]
    found = []
    for place, name in kept.pop("seen"):
        if not name.startswith(own):
            found.append([place, name, getattr(sys.modules.get(name), "__file__", None)])
    return {"now": found}
