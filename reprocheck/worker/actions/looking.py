"""Actions that change nothing by themselves: they import, and they look closer than a snapshot does."""

import sys

__all__ = ["blame", "import_", "look", "watch"]


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


class _Watcher:
    """Stands first in `sys.meta_path`, finds nothing, and notes whose import begins."""

    def __init__(self):
        self.names = []

    def find_spec(self, name, path=None, target=None):
        """None, always."""
        del path, target
        self.names.append(name)


def watch(action, actions):
    """`begin` to note the names of modules in the order in which their imports begin; at the `end`, tell them."""
    kept = actions.kept_by("watch")
    if action["mode"] == "begin":
        kept["watcher"] = _Watcher()
        sys.meta_path.insert(0, kept["watcher"])
        return {}
    watcher = kept.pop("watcher")
    sys.meta_path.remove(watcher)
    names = [name for name in dict.fromkeys(watcher.names) if name in sys.modules]
    return {"now": names}


def blame(action, actions):
    """`begin` to watch `keys`, by module or by line within `modules`; at the `end`, tell who changed them."""
    package = __name__.rpartition(".")[0].rpartition(".")[0]
    __import__(package + ".blame")
    watched = sys.modules[package + ".blame"]
    if action["mode"] == "begin":
        watched.start(action["keys"], action.get("modules", ()))
        actions.kept_by("blame")["on"] = True
        return {}
    if actions.kept_by("blame").pop("on", False):
        watched.stop()
    return {"now": watched.drain()}
