"""Environment variables, as each import and the workload saw them."""

from __future__ import annotations

from typing import Any, ClassVar

from reprocheck.explain.interventions.base import Course, Intervention, moment_of, told, with_actions
from reprocheck.explain.views import ABSENT
from reprocheck.model import StateDifference, Trial

__all__ = ["Environment", "variable_of"]


def variable_of(key: str) -> tuple[str, str] | None:
    """(view, name) of a key: `python` or `c`, and the variable; None for keys that are no variable's value now."""
    kind, _, rest = key.partition(".")
    view, _, name = rest.partition(".")
    return (view, name) if kind == "environ" and view in ("python", "c") and name else None


class Environment(Intervention):
    """A variable, in Python's and C's view, or in C's alone where `setenv` was called behind Python's back."""

    kind: ClassVar[str] = "environment"
    sets_absent: ClassVar[bool] = True

    @classmethod
    def applies_to(cls, difference: StateDifference) -> bool:
        """Any variable. One whose value is not kept can only be taken away."""
        return variable_of(difference.key) is not None

    def apply(self, trial: Trial, value: Course) -> Trial:
        """Set it before every import that saw another value, and before the workload."""
        view, name = variable_of(self.key) or ("", "")
        return with_actions(
            trial,
            [
                {
                    "do": "env",
                    "at": moment_of(moment),
                    "id": self.id,
                    "name": name,
                    "value": None if values[self.key] == ABSENT else str(values[self.key]),
                    "where": view,
                }
                for moment, values, _ in value
            ],
        )

    def says(self, value: Any) -> str:
        """`OMP_NUM_THREADS=1 when torch is imported`."""
        name = (variable_of(self.key) or ("", ""))[1]

        def say(values: dict[str, Any]) -> str:
            return f"`{name}` unset" if values[self.key] == ABSENT else f"`{name}={values[self.key]}`"

        return told(value, say)
