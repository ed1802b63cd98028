"""What a trial's worker reads, without a trial: `python observe.py WORKER_FOLDER REQUEST.json`, prints JSON.

The request: `path` (folders for sys.path), `subjects`, and either nothing more (snapshots at t0, after each subject, t2
and t3, and events) or `blame` with `keys` and `modules` (what `blame` found).
"""

# Run by Python 3.9 as well, without `typing`.
# mypy: ignore-errors
import importlib
import sys


def main() -> None:
    package = type(sys)("_reprocheck_worker")
    package.__path__ = [sys.argv[1]]
    sys.modules["_reprocheck_worker"] = package
    # `json` would be loaded before the first subject.
    with open(sys.argv[2], encoding="utf-8") as file:  # noqa: PTH123 - nor pathlib
        request = eval(file.read())
    sys.path[:0] = request["path"]
    del sys.path[len(request["path"])]
    found = blame(request) if "blame" in request else snapshots(request)
    sys.stdout.flush()
    import json

    print("\n" + json.dumps(found))


def blame(request: dict) -> list:
    module = importlib.import_module("_reprocheck_worker.blame")
    first, *rest = request["subjects"]
    importlib.import_module(first)
    module.start(request["blame"]["keys"], request["blame"]["modules"])
    for subject in rest:
        importlib.import_module(subject)
    module.stop()
    return module.drain()


def snapshots(request: dict) -> dict:
    snapshot = importlib.import_module("_reprocheck_worker.snapshot")
    events = importlib.import_module("_reprocheck_worker.events")
    readers = {}

    def load(names: object) -> None:
        for name in names:
            readers[name] = readers.get(name) or importlib.import_module("_reprocheck_worker.snapshot." + name)

    def take(phase: str) -> None:
        kinds = {}
        with snapshot.quiet():
            for reader in list(readers.values()):
                if phase.partition(":")[0] in reader.phases:
                    kinds.setdefault(reader.name, {}).update(reader.read())
        phases[phase] = {kind + "." + key: value for kind, keys in kinds.items() for key, value in keys.items()}

    phases = {}
    load(snapshot.EARLY)
    events.start()
    take("t0")
    for subject in request["subjects"]:
        importlib.import_module(subject)
        load(reader for library, reader in snapshot.WHEN_LOADED.items() if library in sys.modules)
        take("t1:" + subject)
    happened = events.drain()
    load(snapshot.LATE)
    loaded = set(sys.modules)
    take("t2")
    loaded = sorted(name for name in set(sys.modules) - loaded if not name.startswith("_reprocheck"))
    load(snapshot.LAST)
    take("t3")
    readers_of = {name: [reader.name, list(reader.phases)] for name, reader in readers.items()}
    return {"phases": phases, "events": happened, "loaded_by_t2": loaded, "readers": readers_of}


if __name__ == "__main__":
    main()
