"""The floating-point environment of this thread, seen through arithmetic: no ctypes, no library call.

Python's `float` uses the same control register as C code in the same thread (MXCSR on x86-64, FPCR on aarch64),
so a library that sets flush-to-zero when it is loaded shows in the very next multiplication.
"""

__all__ = ["name", "phases", "read"]

name = "fp"
phases = ("t0", "t1", "t2", "t3")

# Kept in a list, so that no compiler folds the arithmetic into a constant.
_NUMBERS = [2.2250738585072014e-308, 0.5, 5e-324, 1e300, 1.0, 2.0**-60]


def read():
    """`ftz` (denormal results become zero), `daz` (denormal inputs count as zero), `rounding`."""
    smallest_normal, half, denormal, large, one, tiny = _NUMBERS
    up = one + tiny > one
    down = one - tiny < one
    if up:
        rounding = "up"
    elif not down:
        rounding = "nearest"
    else:
        rounding = "down" if -one - tiny < -one else "zero"
    return {
        "ftz": smallest_normal * half == 0.0,
        "daz": denormal * large == 0.0,
        "rounding": rounding,
    }
