"""States of random generators: given out, put back, seeded."""

import sys

from . import NotYet

__all__ = ["rng"]


def rng(action, _):
    """For the generator `of` (`random`, `numpy`, `torch`): `save` tells its state, `state` puts one back, `seed` seeds.

    With `of` = `all`, every generator that is loaded is seeded, cupy's included.
    """
    if action["of"] == "all":
        workload = __import__("_reprocheck_worker.workload", fromlist=["seed"])
        workload.seed(action["seed"])
        return {"now": "seeded with %d" % action["seed"]}
    save, restore, seed = _GENERATORS[action["of"]]
    if "seed" in action:
        seed(action["seed"])
    elif "state" in action:
        restore(action["state"])
        return {"ok": save() == action["state"]}
    return {"state": save()}


def _module(name):
    found = sys.modules.get(name)
    if found is None and name == "random":
        found = __import__(name)
    if found is None:
        raise NotYet("%s is not loaded" % name)
    return found


def _save_random():
    version, words, gauss = _module("random").getstate()
    return [version, "".join("%08x" % word for word in words), gauss]


def _restore_random(state):
    version, words, gauss = state
    numbers = tuple(int(words[at : at + 8], 16) for at in range(0, len(words), 8))
    _module("random").setstate((version, numbers, gauss))


def _numpy():
    _module("numpy")
    return __import__("numpy.random", fromlist=["seed"])


def _save_numpy():
    state = _numpy().get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise NotImplementedError("the legacy generator runs on %s" % state["bit_generator"])
    inner = state["state"]
    return [inner["key"].tobytes().hex(), int(inner["pos"]), int(state["has_gauss"]), float(state["gauss"])]


def _restore_numpy(state):
    words, position, has_gauss, gauss = state
    numpy = _module("numpy")
    key = numpy.frombuffer(bytes.fromhex(words), dtype=numpy.uint32)
    _numpy().set_state(("MT19937", key, position, has_gauss, gauss))


def _save_torch():
    return bytes(_module("torch").default_generator.get_state().tolist()).hex()


def _restore_torch(state):
    torch = _module("torch")
    torch.default_generator.set_state(torch.tensor(list(bytes.fromhex(state)), dtype=torch.uint8))


_GENERATORS = {
    "random": (_save_random, _restore_random, lambda number: _module("random").seed(number)),
    "numpy": (_save_numpy, _restore_numpy, lambda number: _numpy().seed(number % 2**32)),
    "torch": (_save_torch, _restore_torch, lambda number: _module("torch").manual_seed(number)),
}
