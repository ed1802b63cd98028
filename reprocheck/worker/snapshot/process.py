"""The process as the kernel and the interpreter show it, at every phase: cheap, and nothing is imported for it."""

import posix
import sys

from . import quiet

__all__ = ["PARTS", "name", "origin", "phases", "read", "small_file"]

name = "process"
phases = ("t0", "t1", "t2", "t3")

_LOCALE = ("CTYPE", "NUMERIC", "TIME", "COLLATE", "MONETARY", "MESSAGES")
_STATUS = {
    "Umask": "umask",  # from here, because umask(2) can only be read by setting it
    "SigIgn": "signals.ignored",
    "SigCgt": "signals.caught",
    "SigBlk": "signals.blocked",
    "THP_enabled": "thp.process",
    "Mems_allowed_list": "memory_nodes",
    "NoNewPrivs": "no_new_privileges",
}


def read():
    """Kernel side, then interpreter side; a part that can't be read is an error under its own key."""
    found = {}
    for part in PARTS:
        try:
            found.update(part())
        except Exception as error:
            found[part.__name__.strip("_")] = {"error": "%s: %s" % (type(error).__name__, error)}
    return found


def small_file(path):
    """The text of a file below 64 KiB, as `/proc` and `/sys` have them."""
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(fd, 65536).decode("utf-8", "replace")
    finally:
        posix.close(fd)


def origin(thing):
    """`module.qualname` of a function, class or instance: enough to tell who put it there."""
    if thing is None:
        return None
    owner = thing if isinstance(thing, type) or hasattr(thing, "__qualname__") else type(thing)
    module = getattr(owner, "__module__", None)
    return "%s.%s" % (module, getattr(owner, "__qualname__", "?")) if module else getattr(owner, "__qualname__", "?")


def _status():
    found = {}
    for line in small_file("/proc/self/status").splitlines():
        field, _, value = line.partition(":")
        key = _STATUS.get(field)
        if key:
            found[key] = value.strip()
    return found


def _cpus(numbers):
    """A set of CPU numbers as the kernel writes it: `0-3,8`."""
    ordered = sorted(numbers)
    parts = []
    for number in ordered:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else "%d-%d" % (low, high) for low, high in parts)


def _threads():
    names, affinities = {}, {}
    main = posix.getpid()
    for task in posix.listdir("/proc/self/task"):
        try:
            label = small_file("/proc/self/task/" + task + "/comm").strip()
            cpus = _cpus(posix.sched_getaffinity(int(task)))
        except OSError:
            continue  # it ended meanwhile
        names[label] = names.get(label, 0) + 1
        if int(task) != main:
            affinities[cpus] = affinities.get(cpus, 0) + 1
    return {
        "threads.count": sum(names.values()),
        "threads.names": names,
        "affinity": _cpus(posix.sched_getaffinity(0)),
        "affinity.threads": affinities,
    }


def _kernel():
    found = {"cwd": posix.getcwd(), "nice": posix.getpriority(posix.PRIO_PROCESS, 0)}
    found["scheduler"] = posix.sched_getscheduler(0)
    try:
        found["personality"] = small_file("/proc/self/personality").strip()
    except OSError as error:
        found["personality"] = {"error": "OSError: %s" % error}
    return found


def _limits():
    found = {}
    for line in small_file("/proc/self/limits").splitlines()[1:]:
        label = line[:26].strip().lower().replace("max ", "", 1).replace(" ", "_")
        values = line[26:].split()
        found["limit." + label] = values[0] + "/" + values[1]
    return found


def _interpreter():
    found = {
        "dlopen_flags": sys.getdlopenflags(),
        "flags": {field: getattr(sys.flags, field) for field in dir(sys.flags) if not field.startswith(("_", "n_"))},
        # Equal under a pinned hash seed; sets and dicts of strings are laid out by it.
        "hash_probe": "%016x" % (hash("reprocheck") & 0xFFFFFFFFFFFFFFFF),
        "switch_interval": sys.getswitchinterval(),
        "recursion_limit": sys.getrecursionlimit(),
        "path": list(map(str, sys.path)),
    }
    found["flags"].pop("count", None)
    found["flags"].pop("index", None)
    if hasattr(sys, "get_int_max_str_digits"):
        found["int_max_str_digits"] = sys.get_int_max_str_digits()
    return found


def _hooks():
    found = {
        "hook.meta_path": [origin(one) for one in sys.meta_path],
        "hook.path_hooks": [origin(one) for one in sys.path_hooks],
        "hook.import": origin(sys.modules["builtins"].__import__),
        "hook.trace": origin(sys.gettrace()),
        "hook.profile": origin(sys.getprofile()),
        "hook.except": origin(sys.excepthook),
        "hook.unraisable": origin(sys.unraisablehook),
        "hook.display": origin(sys.displayhook),
        "hook.breakpoint": origin(sys.breakpointhook),
    }
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        tools = {str(tool): monitoring.get_tool(tool) for tool in range(6)}
        found["hook.monitoring"] = {tool: owner for tool, owner in tools.items() if owner is not None}
    warnings = sys.modules.get("warnings") or sys.modules.get("_warnings")
    if warnings is not None:
        found["warnings.filters"] = [_filter(one) for one in warnings.filters]
        if hasattr(warnings, "formatwarning"):
            found["warnings.format"] = origin(warnings.formatwarning)
            found["warnings.show"] = origin(warnings.showwarning)
    return found


def _filter(entry):
    action, message, category, module, line = entry
    patterns = [getattr(one, "pattern", one) for one in (message, module)]
    return "%s:%s:%s:%s:%s" % (action, patterns[0] or "", origin(category), patterns[1] or "", line)


def _loaded_modules():
    """State of modules that somebody loaded; asking for it loads none."""
    loaded = sys.modules.get
    found = {}
    gc = loaded("gc")
    if gc is not None:
        found["gc.enabled"] = gc.isenabled() or quiet.active
        found["gc.threshold"] = list(gc.get_threshold())
        found["gc.frozen"] = gc.get_freeze_count() > 0
    atexit = loaded("atexit")
    if atexit is not None:
        found["atexit.count"] = atexit._ncallbacks()
    signal = loaded("_signal")
    if signal is not None:
        found["signals.python"] = _signals(signal)
    locale = loaded("_locale")
    if locale is not None:
        for category in _LOCALE:
            found["locale." + category.lower()] = locale.setlocale(getattr(locale, "LC_" + category), None)
    random = loaded("random")
    if random is not None:
        from .. import digest

        found["random_state"] = digest.numbers(random.getstate()[1])
    context = getattr(loaded("multiprocessing.context"), "_default_context", None)
    if context is not None:
        chosen = getattr(context, "_actual_context", None)
        found["start_method"] = None if chosen is None else chosen.get_start_method()
    # Not `threading.stack_size()`: it sets the size back to 0.
    threading = loaded("threading")
    if threading is not None:
        found["hook.threading_trace"] = origin(getattr(threading, "_trace_hook", None))
        found["hook.threading_profile"] = origin(getattr(threading, "_profile_hook", None))
    decimal = loaded("decimal")
    if decimal is not None:
        found["decimal"] = str(decimal.DefaultContext)
    return found


def _signals(signal):
    found = {}
    for number in range(1, signal.NSIG):
        try:
            handler = signal.getsignal(number)
        except (ValueError, OSError):
            continue
        if handler not in (signal.SIG_DFL, signal.SIG_IGN, None):
            found[str(number)] = origin(handler)
    return found


PARTS = (_status, _threads, _kernel, _limits, _interpreter, _hooks, _loaded_modules)
"""The reader's parts, each a function that returns its keys."""
