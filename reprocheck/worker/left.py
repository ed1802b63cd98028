"""What a trial leaves running when it ends: once it is gone, nobody can tell whose children they were."""

import posix

__all__ = ["tell"]


def tell(folder):
    """Write every process below this one into the file `left`, as its number and when it began; no file for none."""
    found = []
    todo = [str(posix.getpid())]
    while todo:
        for child in _children(todo.pop()):
            # After `)`, which ends the name: the 20th field is when it began.
            fields = _read("/proc/" + child + "/stat").rpartition(")")[2].split()
            if len(fields) > 19:
                found.append(child + " " + fields[19] + "\n")
                todo.append(child)
    if not found:
        return
    try:
        fd = posix.open(folder + "/left", posix.O_WRONLY | posix.O_CREAT | getattr(posix, "O_CLOEXEC", 0), 0o644)
        posix.write(fd, "".join(found).encode("ascii"))
        posix.close(fd)
    except OSError:
        pass  # no room; the trial itself is over, and what it left is no part of its record


def _children(pid):
    try:
        tasks = posix.listdir("/proc/" + pid + "/task")
    except OSError:
        return []
    return [child for task in tasks for child in _read("/proc/" + pid + "/task/" + task + "/children").split()]


def _read(path):
    """The text of a file below `/proc`; empty where it is gone, or this kernel has none."""
    try:
        fd = posix.open(path, posix.O_RDONLY | getattr(posix, "O_CLOEXEC", 0))
    except OSError:
        return ""
    try:
        return posix.read(fd, 1 << 16).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        posix.close(fd)
