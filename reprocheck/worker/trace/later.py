"""Something to do when a module is loaded: now, if it is there already, else right after its body has run.

Finders that stand before this one, such as pytest's for test files, keep their modules to themselves.
"""

import importlib.machinery
import sys

__all__ = ["Later"]


class Later:
    """A finder that notices the import of some modules. It imports nothing itself."""

    def __init__(self):
        """Nothing is waited for yet."""
        self._waiting = {}
        self._wanted = None

    def when(self, name, action):
        """Call `action(module)` once the module `name` is loaded."""
        if name in sys.modules:
            action(sys.modules[name])
            return
        self._waiting[name] = action
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def whenever(self, wanted, action):
        """Call `action(module)` after each module whose file `wanted(file)`."""
        self._wanted = (wanted, action)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def stop(self):
        """Wait for nothing any more."""
        self._waiting.clear()
        self._wanted = None
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name, path=None, target=None):
        """The module's spec with a loader that tells; None for modules nobody waits for."""
        action = self._waiting.pop(name, None)
        if action is None and self._wanted is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        if action is None and spec.origin and self._wanted[0](spec.origin):
            action = self._wanted[1]
        if action is None:
            return None
        spec.loader = _Telling(spec.loader, action)
        return spec


class _Telling:
    """A module's own loader, and an action after it."""

    def __init__(self, loader, action):
        self._loader = loader
        self._action = action

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # From here on the module is what it would be without us.
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._action(module)
