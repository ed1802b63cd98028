"""Calling a function of one particular loaded object, by its address.

No `dlopen`, not even with RTLD_NOLOAD: nothing is looked up by name, no audit event is raised, and of two copies of a
library exactly the one that is meant is asked. `ctypes` maps libffi, so this is for t2 and later.
"""

__all__ = ["function", "integer", "text"]

_STT_GNU_IFUNC = 10


def function(memory, one, symbol, result, *arguments):
    """A callable for `symbol` of the loaded object `one`, or None if it does not define it as a plain function."""
    import ctypes

    found = one.symbols(memory).find(memory, symbol)
    if found is None or found[2] & 15 == _STT_GNU_IFUNC:
        return None
    return ctypes.CFUNCTYPE(result, *arguments)(found[1] + one.base)


def integer(memory, one, symbol, *values):
    """What `int symbol(int…)` returns, or None if there is no such function."""
    import ctypes

    call = function(memory, one, symbol, ctypes.c_int, *[ctypes.c_int] * len(values))
    return None if call is None else call(*values)


def text(memory, one, symbol):
    """What `const char *symbol(void)` returns, or None."""
    import ctypes

    call = function(memory, one, symbol, ctypes.c_char_p)
    raw = None if call is None else call()
    return None if raw is None else raw.decode("utf-8", "replace").strip()
