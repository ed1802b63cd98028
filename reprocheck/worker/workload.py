"""The user's code: finding it, seeding it, calling it. Loaded only after the last subject."""

import importlib
import importlib.util
import sys


def loaded():
    """Called by who loads code of the workload otherwise than by `import`, once it is there. A trace replaces it."""


class TargetError(Exception):
    """The target cannot be reached; the message is one sentence for the user."""

    fault_kind = "target"


def load(target):
    """A function that runs the workload and returns `(value, is_script)`.

    For kind `script` the value is the script's globals. Loading a function's file happens here, so that its
    own import errors are told apart from errors while it runs.
    """
    if target["kind"] == "nothing":
        return lambda: (None, False)
    if target["kind"] == "script":
        return lambda: (_run_script(target["path"]), True)
    if target["kind"] == "module":
        try:
            module = importlib.import_module(target["module"])
        except ModuleNotFoundError as error:
            if error.name and (target["module"] + ".").startswith(error.name + "."):
                raise TargetError(
                    "there is no module `%s` in this environment; check the spelling, or run from the folder that "
                    "holds it" % target["module"]
                ) from error
            raise
        place = target["module"]
    else:
        module = _load_file(target["path"])
        place = target["path"]
    function = module
    for part in target["name"].split("."):
        function = getattr(function, part, None)
        if function is None:
            raise TargetError("`%s` defines no function `%s`" % (place, target["name"]))
    if not callable(function):
        raise TargetError("`%s` in `%s` is a %s, not a function" % (target["name"], place, type(function).__name__))
    missing = _required(function)
    if missing:
        raise TargetError(
            "`%s` in `%s` needs arguments (%s), and a workload is called without any; give them defaults, or, where it "
            "is a test, use `reprocheck pytest`" % (target["name"], place.rpartition("/")[2], ", ".join(missing))
        )
    return lambda: (_call(function), False)


def _required(function):
    """Names of the arguments without defaults; `inspect`, which loads much, would do it for every callable."""
    if type(function) is not type(_call):
        return []
    code = function.__code__
    given = len(function.__defaults__ or ())
    alone = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return [
        *code.co_varnames[: code.co_argcount - given],
        *(name for name in alone if name not in (function.__kwdefaults__ or {})),
    ]


def _call(function):
    value = function()
    if hasattr(value, "__await__"):
        import asyncio

        async def wait():
            return await value

        return asyncio.run(wait())
    return value


def _load_file(path):
    """The module of a file, under its own name, so that processes it spawns can import it again."""
    name = path.rpartition("/")[2].rpartition(".")[0]
    if name in sys.modules:
        name = "_workload_" + name
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _run_script(path):
    """Run a file as `python file.py` would; returns its globals."""
    module = type(sys)("__main__")
    module.__file__ = path
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = module
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    try:
        exec(code, module.__dict__)  # noqa: S102 - running the user's script is the job
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
    return module.__dict__


def seed(number):
    """Seed every generator that is loaded: `random`, numpy's legacy one, torch's, cupy's."""
    if "random" in sys.modules:
        sys.modules["random"].seed(number)
    if "numpy" in sys.modules:
        importlib.import_module("numpy.random").seed(number % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(number)
    cupy = sys.modules.get("cupy")
    if cupy is not None and cupy.cuda.is_available():
        cupy.random.seed(number)
