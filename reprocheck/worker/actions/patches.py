"""Replaced functions: remembering what stood in a place, putting it back, and putting a replacement in."""

import sys

from ..snapshot.patches import foreign, locate, standard

__all__ = ["patch"]

_FUNCTION = type(lambda: None)


def patch(action, actions):
    """In the place `namespace`.`name`: `remember` what is there, put the `original` back, or the `replacement` in.

    The original is what was remembered; failing that, a function of this name in the namespace's own package. The
    replacement is looked up by its `definition` (`module.qualname (file:line)`, as in a snapshot), first by name, then
    among all functions alive.
    """
    namespace, name = action["namespace"], action["name"]
    kept = actions.kept_by("patch")
    owner = locate(namespace)
    if action["mode"] == "remember":
        root = namespace.partition(".")[0]
        if owner is None and root in standard():
            # A module of the standard library may be loaded early; a package may not, its import is the experiment.
            __import__(root)
            owner = locate(namespace)
        found = _shown(owner, namespace, name)
        if found == "own":
            kept[namespace, name] = vars(owner)[name]
        return {"now": found}
    if owner is None:
        raise LookupError("%s is not loaded" % namespace)
    was = _shown(owner, namespace, name)
    if action["mode"] == "original":
        if was != "own":
            found = (namespace, name) in kept
            # Whoever puts it in again later has to find it alive.
            kept[was] = vars(owner)[name]
            setattr(owner, name, kept[namespace, name] if found else _original(namespace, name, vars(owner)[name]))
        wanted = "own"
    else:
        wanted = action["definition"]
        if was != wanted:
            setattr(owner, name, kept[wanted] if wanted in kept else _defined(wanted))
    now = _shown(owner, namespace, name)
    return {"was": was, "now": now, "ok": now == wanted}


def _shown(owner, namespace, name):
    """The snapshot's word for what is in a place: a definition, `own` for the package's own function, `absent`."""
    if owner is None or name not in vars(owner):
        return "absent"
    return foreign(owner, namespace).get(name, "own")


def _original(namespace, name, replacement):
    """What `functools.wraps` left in the replacement, or a function of this name in a module of the same package."""
    wrapped = getattr(replacement, "__wrapped__", None)
    if wrapped is not None:
        return wrapped
    root = namespace.partition(".")[0]
    for module in list(sys.modules):
        if module == root or module.startswith(root + "."):
            value = vars(sys.modules[module]).get(name)
            if value is not replacement and getattr(value, "__module__", None) == module:
                return value
    raise LookupError("the original of %s.%s is not to be found" % (namespace, name))


def _definition(function):
    code = function.__code__
    module = function.__globals__.get("__name__") or "?"
    return "%s.%s (%s:%d)" % (module, function.__qualname__, code.co_filename, code.co_firstlineno)


def _defined(text):
    parts = text.partition(" ")[0].split(".")
    for end in range(len(parts) - 1, 0, -1):
        value = sys.modules.get(".".join(parts[:end]))
        for part in parts[end:]:
            value = vars(value).get(part) if hasattr(value, "__dict__") else None
        if type(value) is _FUNCTION and _definition(value) == text:
            return value
    import gc

    for value in gc.get_objects():
        if type(value) is _FUNCTION and _definition(value) == text:
            return value
    raise LookupError("%s does not exist in this process" % text)
