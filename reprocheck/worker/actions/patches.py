"""Replaced functions: remembering what stood in a place, putting it back, and putting a replacement in."""

import sys

from ..snapshot.patches import definition, locate

__all__ = ["patch"]


def patch(action, actions):
    """In the place `namespace`.`name`: `remember` what is there, put the `original` back, or put what `definition` names.

    The original is what was remembered; failing that, a function of this name in the namespace's own package. A
    replacement is looked up by its definition (`module.qualname (file:line)`), first by name, then among all functions
    alive.
    """
    namespace, name = action["namespace"], action["name"]
    kept = actions.kept_by("patch")
    owner = locate(namespace)
    if action["mode"] == "remember":
        if owner is not None and name in vars(owner):
            kept[namespace, name] = vars(owner)[name]
        return {"now": _told(owner, name)}
    if owner is None:
        raise LookupError("%s is not loaded" % namespace)
    was = _told(owner, name)
    if action["mode"] == "original":
        value = kept.get((namespace, name), kept)
        if value is kept:
            value = _original(namespace, name, vars(owner).get(name))
        wanted = None
    else:
        value = _defined(action["definition"])
        wanted = action["definition"]
    setattr(owner, name, value)
    now = _told(owner, name)
    return {"was": was, "now": now, "ok": now == wanted if wanted else now != was or vars(owner)[name] is value}


def _told(owner, name):
    if owner is None or name not in vars(owner):
        return "absent"
    return definition(vars(owner)[name])


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


def _defined(text):
    path = text.partition(" ")[0]
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:end]))
        if module is None:
            continue
        value = module
        for part in parts[end:]:
            value = vars(value).get(part) if hasattr(value, "__dict__") else None
        if value is not None and definition(value) == text:
            return value
    import gc

    function = type(_told)
    for value in gc.get_objects():
        if type(value) is function and definition(value) == text:
            return value
    raise LookupError("%s does not exist in this process" % text)
