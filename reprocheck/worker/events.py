"""Events: which line of which module imported, loaded or set something, from an audit hook.

The hook stays for the life of the process (Python has no way to remove one) and never raises: an exception in it
would surface in the user's import. See https://docs.python.org/3/library/audit_events.html for the events.
`importlib.import_module` raises no `import` event for a pure Python module, so a subject itself has none.
"""

import sys
import time

from . import elf
from .snapshot import environ

__all__ = ["Site", "call_site", "drain", "move", "start"]

# Frames of these modules carry out what another frame asked for.
_CARRIERS = (
    *("os", "_collections_abc", "ctypes", "importlib", "importlib._bootstrap", "importlib._bootstrap_external"),
    *("importlib.util", "importlib.metadata", "zipimport", "contextlib"),
)
_OWN = ("_reprocheck_worker", "reprocheck.worker")

_events: list[dict[str, object]] = []
_seen: set[object] = set()
_libraries: set[elf.Loaded] = set()
_state = {"since": 0.0, "on": False, "count": None, "trigger": None, "blind": False}


class Site:
    """The code that did something: `file` and `line`, and `module`, whose body was executing. All may be None.

    `ours` is true when a reader of ours set it off.
    """

    __slots__ = ("file", "line", "module", "ours")

    def __init__(self, file=None, line=None, module=None):
        self.file, self.line, self.module, self.ours = file, line, module, False

    def fields(self):
        """As the fields of an event."""
        return {"file": self.file, "line": self.line, "module": self.module}


def call_site(frame):
    """The innermost frame from `frame` on that is nobody's carrier, and the innermost module body around it."""
    site = Site()
    while frame is not None:
        owner = frame.f_globals.get("__name__") or ""
        if owner.startswith(_OWN):
            site.ours = ".capture" in owner or ".snapshot" in owner
            break
        if owner not in _CARRIERS and site.module is None:
            if site.file is None:
                site.file, site.line = frame.f_code.co_filename, frame.f_lineno
            if frame.f_code.co_name == "<module>":
                site.module = owner
        frame = frame.f_back
    return site


def start(since=None):
    """Install the hook, once. Events tell seconds since `since` (of `time.perf_counter`; now when not given)."""
    _state["since"] = time.perf_counter() if since is None else since
    _seen.update(module for module in sys.modules if isinstance(module, str))
    _check(None)
    if not _state["on"]:
        _state["on"] = True
        sys.addaudithook(_hook)


def move(since):
    """Count seconds from another moment on: a forked child's, whose parent waited."""
    _state["since"] = since


def drain():
    """The events since the last call, oldest first; imports that failed are left out.

    Each has `kind` (`import`, `library`, `dlopen`, `putenv`, `unsetenv`), `at`, `name`, `value`, `file`, `line`,
    `module`. A `library` is a native object that came in, `value` what was being loaded then.
    """
    _check(None)
    taken, _events[:] = _events[:], []
    return [event for event in taken if event["kind"] != "import" or event["name"] in sys.modules]


def _hook(event, arguments):
    handler = _HANDLERS.get(event)
    if handler is not None:
        try:
            handler(*arguments)
        except Exception as error:
            _events.append(_event("error", event, "%s: %s" % (type(error).__name__, error), Site()))


def _event(kind, name, value, site):
    at = round(time.perf_counter() - _state["since"], 6)
    return {"kind": kind, "at": at, "name": name, "value": value, **site.fields()}


def _import(name, filename=None, *_):
    if filename is None:
        if "." in name or name in _seen:
            return
        _seen.add(name)
        site = call_site(sys._getframe(2))
        if not site.ours:
            _events.append(_event("import", name, None, site))
    elif (name, filename) not in _seen:
        _seen.add((name, filename))
        site = call_site(sys._getframe(2))
        _check((name, site))
        if not site.ours:
            _events.append(_event("import", name, str(filename), site))


def _dlopen(name, *_):
    if name is None:
        return
    text = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else str(name)
    site = call_site(sys._getframe(2))
    _check((text, site))
    if not site.ours:
        _events.append(_event("dlopen", text, None, site))


def _putenv(name, value):
    variable, text = _text(name), _text(value)
    _events.append(_event("putenv", variable, environ.shown(variable, text), call_site(sys._getframe(2))))


def _unsetenv(name):
    _events.append(_event("unsetenv", _text(name), None, call_site(sys._getframe(2))))


def _text(raw):
    return raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else str(raw)


def _check(trigger):
    """Report objects that came in since the last look; they came in with the trigger of that look."""
    try:
        with elf.Memory() as memory:
            number = elf.count(memory)
            if number is None or number != _state["count"]:
                for one in elf.objects(memory):
                    if one not in _libraries:
                        _libraries.add(one)
                        _report(one)
                _state["count"] = number
    except elf.ElfError as error:
        if not _state["blind"]:
            _state["blind"] = True
            _events.append(_event("error", "library", "ElfError: %s" % error, Site()))
    _state["trigger"] = trigger


def _report(one):
    if _state["on"] and one.path:
        name, site = _state["trigger"] or (None, Site())
        if site.ours:
            return
        _events.append(_event("library", one.path, name, site))


_HANDLERS = {
    "import": _import,
    "ctypes.dlopen": _dlopen,
    "os.putenv": _putenv,
    "os.unsetenv": _unsetenv,
}
