"""A process that has imported what several orders begin with, and is forked for each way they go on.

It takes commands from the engine through one named pipe and answers through another; both are gone when the engine is,
so it never outlives it. What the process did so far (its lines, its state, its streams) is also its children's past; a
child goes on as the trial, or the further prefix, that it was forked for. Only `posix`, `marshal` and what is loaded
already: nothing here loads a module.
"""

import marshal
import posix
import sys
import time

__all__ = ["serve", "why_not"]

_KILL = 9
# Character devices of a GPU driver that was started: a context does not survive a fork.
_DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/dxg")


def serve(job, lines, capture, renew):
    """Answer the engine until it asks for no more forks. Returns only in a child, with the job the child is there for.

    `lines` and `capture` go on as the child's own, with the time spent waiting here left out; `renew(folder)` points
    the crash handler at the child's folder.
    """
    begin = time.perf_counter()
    ask = posix.open(job["ask"], posix.O_RDONLY | posix.O_CLOEXEC)
    answer = posix.open(job["answer"], posix.O_WRONLY | posix.O_CLOEXEC)
    reason = why_not()
    _send(answer, ["refused", reason] if reason else ["ready", posix.getpid()])
    children = {}
    while True:
        message = _receive(ask)
        if message is None:
            _end(children, job["height"])
            posix._exit(0)
        if message[0] == "reap":
            status = posix.waitpid(message[1], 0)[1]
            del children[message[1]]
            _send(answer, ["reaped", status])
            continue
        random = _random_state()
        pid = posix.fork()
        if pid:
            children[pid] = "height" in message[1]
            _send(answer, ["forked", pid])
            continue
        posix.setsid()
        posix.close(ask)
        posix.close(answer)
        if random is not None:
            sys.modules["random"].setstate(random)
        child = message[1]
        for name, number in (("stdout", 1), ("stderr", 2)):
            fd = posix.open(child["folder"] + "/" + name, posix.O_WRONLY)
            posix.dup2(fd, number)
            posix.close(fd)
        renew(child["folder"])
        lines.move(child["folder"] + "/phases.jsonl", time.perf_counter() - begin)
        if capture:
            capture.move()
        return child


def why_not():
    """Why this process must not be forked, in words; None if it may be.

    What counts is whether a thread is there at the moment of a fork. Some pools (OpenBLAS's, which numpy starts when it
    is loaded) are stopped by their own `pthread_atfork` handler before a fork and started again at their next use, on
    both sides; that is tried here with a child that ends at once. A thread that is there after it, too, would be lost
    in every child, with whatever lock it holds.
    """
    for fd in posix.listdir("/proc/self/fd"):
        try:
            target = posix.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue  # the one by which the folder was read
        if target.startswith(_DEVICES):
            return "the driver of a GPU was started (%s is open)" % target
    threads = _threads()
    if len(threads) < 2:
        return None
    threading = sys.modules.get("threading")
    if threading is None or threading.active_count() < 2:
        try:
            pid = posix.fork()
            if not pid:
                posix._exit(0)
            posix.waitpid(pid, 0)
        except SystemError:
            pass  # from Python 3.12 on it warns where threads are left, and warnings may be errors here
        threads = _threads()
    if len(threads) < 2:
        return None
    names = sorted(threads)
    if threading is not None and threading.active_count() > 1:
        names = sorted(one.name for one in threading.enumerate() if one is not threading.main_thread())
    shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
    return "threads were started that a fork would lose (%d: %s)" % (len(threads) - 1, shown)


def _threads():
    """The names of this process's threads, as the kernel has them."""
    found = []
    for task in posix.listdir("/proc/self/task"):
        try:
            fd = posix.open("/proc/self/task/" + task + "/comm", posix.O_RDONLY | posix.O_CLOEXEC)
            found.append(posix.read(fd, 64).decode("utf-8", "replace").strip())
            posix.close(fd)
        except OSError:
            continue  # it ended meanwhile
    return found


def _random_state():
    """The state of `random`, which seeds itself anew in every child: a fresh trial's would go on where it was."""
    random = sys.modules.get("random")
    return random.getstate() if hasattr(random, "getstate") else None


def _end(children, height):
    """End the children: trials at once; a child that has children itself sees what we saw, and has time to end those.

    Processes further down have less time, so that each is waited for by its parent. One that is still importing has no
    children and does not look; it is killed when the time is up.
    """
    until = time.perf_counter() + height
    for pid in sorted(children, key=children.get):
        while children[pid] and time.perf_counter() < until:
            if posix.waitpid(pid, posix.WNOHANG)[0]:
                break
            time.sleep(0.01)
        else:
            for kill in (posix.killpg, posix.kill):
                try:
                    kill(pid, _KILL)
                except OSError:
                    continue  # not in a group of its own yet
            posix.waitpid(pid, 0)


def _send(fd, value):
    data = marshal.dumps(value, 2)
    view = memoryview(len(data).to_bytes(4, "little") + data)
    while view:
        view = view[posix.write(fd, view) :]


def _receive(fd):
    """The next message; None when the engine closed its side."""
    head = _exactly(fd, 4)
    return None if head is None else marshal.loads(_exactly(fd, int.from_bytes(head, "little")))  # noqa: S302


def _exactly(fd, count):
    data = b""
    while len(data) < count:
        piece = posix.read(fd, count - len(data))
        if not piece:
            return None
        data += piece
    return data
