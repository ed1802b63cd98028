"""CUDA kernels by operator, from torch's profiler.

CUPTI sees every launch of the process, whoever made it, so kernels of cupy and of toolboxes are there as well. A kernel
belongs to the operator during which the processor launched it: the launch and the kernel share a correlation number.
"""

import importlib

__all__ = ["assign", "profile_for"]


def profile_for(torch):
    """A profile if torch is loaded and sees a CUDA device, else None."""
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_available():
        return None
    return _Profile(torch)


class _Profile:
    def __init__(self, torch):
        profiler = importlib.import_module("torch.profiler")
        activity = profiler.ProfilerActivity
        self._torch = torch
        self._profile = profiler.profile(activities=[activity.CPU, activity.CUDA])
        self._numbers = []

    def start(self):
        self._profile.__enter__()

    def begin(self):
        number = len(self._numbers)
        self._numbers.append(None)
        begun = self._torch.profiler.record_function("reprocheck#%d" % number)
        begun.__enter__()
        return number, begun

    def end(self, begun, number):
        self._numbers[begun[0]] = number
        begun[1].__exit__(None, None, None)

    def stop(self):
        """`[(number, [kernel, …])]` of the operators that launched any."""
        self._torch.cuda.synchronize()
        self._profile.__exit__(None, None, None)
        events = self._profile.profiler.kineto_results.events()
        cuda = self._torch._C._autograd.DeviceType.CUDA
        ranges, launches, kernels = [], {}, []
        for event in events:
            name = event.name()
            start = event.start_ns()
            if event.device_type() == cuda:
                kernels.append((start, event.correlation_id(), name))
            elif name.startswith("reprocheck#"):
                number = self._numbers[int(name[11:])]
                if number is not None:
                    ranges.append((start, start + event.duration_ns(), number))
            else:
                launches.setdefault(event.correlation_id(), start)
        return assign(ranges, launches, kernels)


def assign(ranges, launches, kernels):
    """`[(number, [kernel, …])]` from ranges `(start, end, number)`, launch times by correlation and device events.

    Kernels are in the order in which they ran; those launched outside every range are left out.
    """
    ranges = sorted(ranges)
    found = {}
    for _, correlation, name in sorted(kernels):
        launched = launches.get(correlation)
        if launched is None or name.startswith("reprocheck#"):
            continue
        # The innermost range: the latest to begin among those that hold the launch.
        holding = [number for start, end, number in ranges if start <= launched <= end]
        if holding:
            found.setdefault(holding[-1], []).append("cuda " + name)
    return list(found.items())
