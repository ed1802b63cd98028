"""Pins for what differs between identical runs: the system's entropy, its clocks, the layout of addresses."""

import os
import posix
import sys

__all__ = ["address", "clock", "entropy"]

_ADDR_NO_RANDOMIZE = 0x0040000  # <sys/personality.h>
_STEP_NS = 1_000


def entropy(_, __):
    """Make `os.urandom` (so `secrets`, `uuid4`, numpy's unseeded generators) a fixed sequence, and seed `random`."""
    import random

    state = {"count": 0}

    def urandom(size):
        state["count"] += 1
        block = b"%032d" % state["count"]
        return (block * (size // len(block) + 1))[:size]

    os.urandom = urandom
    random._urandom = urandom
    random.seed(0)
    return {}


def clock(_, __):
    """Make the clocks of `time`, and what `datetime` shows of them, advance by 1 µs with every look."""
    import datetime as dt
    import time

    state = {"ns": 1_700_000_000_000_000_000}

    def now():
        state["ns"] += _STEP_NS
        return state["ns"]

    for name in ("time", "monotonic", "perf_counter", "process_time"):
        setattr(time, name, lambda: now() / 1e9)
        setattr(time, name + "_ns", now)

    class Fixed(dt.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(now() / 1e9, tz)

        @classmethod
        def utcnow(cls):
            return cls.fromtimestamp(now() / 1e9, dt.timezone.utc).replace(tzinfo=None)

        @classmethod
        def today(cls):
            return cls.now()

    dt.datetime = Fixed
    return {}


def address(_, __):
    """Start this interpreter once more, without randomised addresses; returns in the new process."""
    import ctypes

    personality = ctypes.CDLL(None, use_errno=True).personality
    personality.argtypes = [ctypes.c_ulong]
    current = personality(0xFFFFFFFF)
    if current & _ADDR_NO_RANDOMIZE:
        return {"now": "fixed"}
    if personality(current | _ADDR_NO_RANDOMIZE) < 0:
        raise OSError(ctypes.get_errno(), "personality")
    with open("/proc/self/cmdline", "rb") as file:
        arguments = file.read().split(b"\0")[:-1]
    posix.execv(sys.executable, arguments)
    return {}
