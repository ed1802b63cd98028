"""Settings of torch, cupy, numpy and the interpreter that have a setter: precision, dtype, errstate, locale."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, ClassVar

from reprocheck.explain.interventions.base import Course, Intervention, moment_of, told, with_actions
from reprocheck.model import StateDifference, Trial

__all__ = ["Setting"]

SETTABLE = (
    *("torch.deterministic.*", "torch.fp32.*", "torch.reduced.*", "torch.sdp.*", "torch.backend.*", "torch.mode.*"),
    *("torch.cudnn.*", "torch.cuda.sync_debug", "torch.multiprocessing.sharing", "torch.inductor.*", "torch.dynamo.*"),
    *("cupy.accelerator.*", "cupy.fft.*", "cupy.alloc.allocator"),
    *("numpy.errstate.*", "numpy.print_options.*", "numpy.buffer_size", "numpy.alloc.madvise_hugepage"),
    *("process.affinity", "process.cwd", "process.dlopen_flags", "process.gc.enabled", "process.gc.threshold"),
    *("process.int_max_str_digits", "process.locale.*", "process.nice", "process.path", "process.recursion_limit"),
    *("process.start_method", "process.switch_interval", "process.umask", "process.warnings.filters"),
)
NOT_SETTABLE = (
    "torch.mode.function_modes",
    "torch.mode.dispatch_modes",
    "torch.mode.inference",
    "torch.inductor",
    "torch.dynamo",
)


class Setting(Intervention):
    """One setting, through its own setter, read back afterwards."""

    kind: ClassVar[str] = "setting"

    @classmethod
    def applies_to(cls, difference: StateDifference) -> bool:
        """Keys of the list above."""
        key = difference.key
        return key not in NOT_SETTABLE and any(fnmatchcase(key, pattern) for pattern in SETTABLE)

    def apply(self, trial: Trial, value: Course) -> Trial:
        """Set it before every import that saw another value, and before the workload."""
        return with_actions(
            trial,
            [
                {"do": "set", "at": moment_of(moment), "id": self.id, "key": self.key, "value": values[self.key]}
                for moment, values, _ in value
            ],
        )

    def says(self, value: Any) -> str:
        """`torch.mode.default_dtype = torch.float64 before the workload`."""
        return told(value, lambda values: f"`{self.key} = {values[self.key]}`")
