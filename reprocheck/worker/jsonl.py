"""JSON lines without `json`, which loads 23 modules and a shared object before the first subject.

Covers what a record holds: None, bool, int, float, str, list/tuple, dict. Non-finite floats become the
strings "nan", "inf" and "-inf", since JSON has no such numbers.
"""

import posix


def _quote(text):
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return '"' + text + '"'
    out = []
    for char in text:
        code = ord(char)
        if char in '"\\':
            out.append("\\" + char)
        elif 32 <= code < 127:
            out.append(char)
        elif 0xD800 <= code < 0xE000:
            # Half of a pair, from bytes that were no text: JSON readers refuse it, and the whole line with it.
            out.append("\\ufffd")
        elif code < 0x10000:
            out.append("\\u%04x" % code)
        else:
            code -= 0x10000
            out.append("\\u%04x\\u%04x" % (0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF)))
    return '"' + "".join(out) + '"'


def dumps(value):
    """`value` as one line of ASCII JSON; what JSON cannot hold is written as its `repr`."""
    kind = type(value)
    if kind is str:  # first, for most of a record are strings
        return _quote(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if kind is int:
        return int.__repr__(value)
    if kind is float:
        if value != value:  # noqa: PLR0124 - true for NaN only, and `math` is a shared object
            return '"nan"'
        if value in (float("inf"), float("-inf")):
            return '"inf"' if value > 0 else '"-inf"'
        return float.__repr__(value)
    if isinstance(value, dict):
        return "{" + ",".join([_quote(str(k)) + ":" + dumps(v) for k, v in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([dumps(v) for v in value]) + "]"
    if isinstance(value, str):
        return _quote(str(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(int(value))
    if isinstance(value, float):
        return dumps(float(value))
    return _quote(repr(value))


def _open(path):
    return posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | getattr(posix, "O_CLOEXEC", 0), 0o644)


class Lines:
    """Appends JSON objects to a file, a line each; a call is a single `write`, so that a crash leaves whole lines.

    A forked child inherits the file, so writes from any other process than the one that opened it are dropped.
    """

    def __init__(self, path, clock, start):
        """Open `path` for appending; times are seconds of `clock` since `start`."""
        self._fd = _open(path)
        self._pid = posix.getpid()
        self._clock = clock
        self.since = start

    @property
    def own(self):
        """False in a process that was forked from the one these lines belong to."""
        return posix.getpid() == self._pid

    def move(self, path, waited):
        """Go on in `path` as this process's own; `waited` seconds of its past are not counted."""
        posix.close(self._fd)
        self._fd = _open(path)
        self._pid = posix.getpid()
        self.since += waited

    def now(self):
        """Seconds since the worker's first statement."""
        return round(self._clock() - self.since, 6)

    def write(self, what, **fields):
        """Append `{"what": what, "at": seconds, **fields}`."""
        self.write_all(what, (fields,))

    def write_all(self, what, entries):
        """Append a line as `write` does for each of `entries`, at once: importing torch alone is 200 events."""
        if not self.own:
            return
        head = {"what": what, "at": self.now()}
        view = memoryview("".join([dumps({**head, **fields}) + "\n" for fields in entries]).encode("ascii"))
        while view:
            view = view[posix.write(self._fd, view) :]
