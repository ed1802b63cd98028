"""Interventions: changes that a trial is asked to make to its own state, at a moment that is asked for.

An action is a dict: `do` (the verb), `at` (`t0`, `before:MODULE`, `past:MODULE`, `after:SUBJECT`, `t2`, `workload`),
`id` (whose it is, given back in the report), and what the verb needs. Every action leaves one line `action` in the
record with `ok` (True, False, or None where there was nothing to change yet), and either what it found (`was`, `now`)
or the `error`: an action that could not be carried out never fails the trial, because then its outcome would say
nothing.

This module obeys the strict import rule. A verb's module is loaded when its first action is due.
"""

import sys

from . import imports

__all__ = ["Actions", "NotYet"]

_VERBS = {
    "address": "pins",
    "clock": "pins",
    "entropy": "pins",
    "env": "process",
    "fp": "floating",
    "import": "looking",
    "load": "libraries",
    "local": "libraries",
    "look": "looking",
    "patch": "patches",
    "rng": "generators",
    "set": "settings",
    "skip": "libraries",
    "threads": "threads",
    "watch": "looking",
}


class NotYet(Exception):
    """What an action is about does not exist at this moment: nothing was changed, and `ok` is None."""


class Actions:
    """All actions of one trial."""

    def __init__(self, actions, lines):
        """Sort them by moment; `lines` is the record under way."""
        self._lines = lines
        self._due = {}
        self.kept = {}
        for action in actions:
            self._due.setdefault(action["at"], []).append(action)
        awaited = [moment for moment in self._due if moment.startswith(("before:", "past:"))]
        if awaited:
            imports.watch(self.at, awaited)

    def at(self, when):
        """Carry out what is due at `when`, once. At `workload`, report what never became due."""
        for action in self._due.pop(when, ()):
            self._carry_out(action, when)
        if when == "workload":
            for moment in list(self._due):
                for action in self._due.pop(moment):
                    self._report(action, moment, ok=False, error="this moment never came")

    def kept_by(self, verb):
        """A dict in which the actions of one verb leave things for one another."""
        return self.kept.setdefault(verb, {})

    def _carry_out(self, action, when):
        try:
            found = _verb(action["do"])(action, self) or {}
        except NotYet as error:
            self._report(action, when, ok=None, error=str(error))
            return
        except Exception as error:
            self._report(action, when, ok=False, error="%s: %s" % (type(error).__name__, error))
            return
        self._report(action, when, **{"ok": True, **found})

    def _report(self, action, when, **fields):
        self._lines.write("action", **{"do": action["do"], "when": when, "id": action.get("id"), **fields})


def _verb(name):
    module = __name__ + "." + _VERBS[name]
    __import__(module)
    return getattr(sys.modules[module], name if name != "import" else "import_")
