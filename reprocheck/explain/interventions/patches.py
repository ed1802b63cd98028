"""Replaced functions: put the original back, or the replacement in."""

from __future__ import annotations

from typing import Any, ClassVar

from reprocheck.explain.interventions.base import Course, Intervention, moment_of, told, with_actions
from reprocheck.explain.views import ABSENT
from reprocheck.model import StateDifference, Trial

__all__ = ["Patch", "place_of"]


def place_of(key: str) -> tuple[str, str]:
    """(namespace, name) of a key: `torch.nn.functional`, `relu`."""
    namespace, _, name = key.removeprefix("patches.").rpartition(".")
    return namespace, name


class Patch(Intervention):
    """What stands in the place of a public function."""

    kind: ClassVar[str] = "patch"
    sets_absent: ClassVar[bool] = True

    @classmethod
    def applies_to(cls, difference: StateDifference) -> bool:
        """Single functions; the digest of a whole namespace is no place."""
        return difference.key.startswith("patches.") and not difference.key.startswith("patches.digest.")

    def apply(self, trial: Trial, value: Course) -> Trial:
        """Remember the original before every import, then put in what the other order has there."""
        namespace, name = place_of(self.key)
        what = {"do": "patch", "id": self.id, "namespace": namespace, "name": name}
        moments = [f"before:{subject}" for subject in trial.order]
        actions: list[dict[str, Any]] = [{**what, "at": moment, "mode": "remember"} for moment in moments]
        for moment, values, _ in value:
            wanted = values[self.key]
            put = {"mode": "original"} if wanted == ABSENT else {"mode": "replacement", "definition": wanted}
            actions.append({**what, "at": moment_of(moment), **put})
        return with_actions(trial, actions)

    def says(self, value: Any) -> str:
        """`the original torch.save before the workload`."""
        place = self.key.removeprefix("patches.")

        def say(values: dict[str, Any]) -> str:
            wanted = values[self.key]
            return f"the original `{place}`" if wanted == ABSENT else f"`{wanted}` in the place of `{place}`"

        return told(value, say)
