"""Where in the workload an operator belongs: source line, module path, and for a backward one its forward operator."""

from .own import OTHER, OWN

__all__ = ["Place", "Places"]

_CALL, _OPTIMISER, _INITIALISER = 8, 9, 10
_MAX_NODES = 2_000_000


class Place:
    """A site of the workload, of a toolbox in between, the module path, and what phase of training it belongs to."""

    __slots__ = ("forward", "line", "module", "node", "own", "phase", "via", "via_line")

    def __init__(self):
        self.own = self.via = self.module = self.node = self.forward = None
        self.line = self.via_line = 0
        self.phase = ""


class Places:
    """Finds places by walking the stack; modules are recognised by the frame of their call, so no hook is installed."""

    def __init__(self, torch, own):
        self._torch = torch
        self._own = own
        self._call = torch.nn.Module._call_impl.__code__
        self._marks = {id(self._call): _CALL}  # by address, as in `Own`, which holds the codes
        self._names = {}
        self._parameters = {}
        self._roots = {}
        self._nodes = {}
        self._last = None
        self._sequence = getattr(torch.autograd, "_get_sequence_nr", None)
        self._node = getattr(torch._C, "_current_autograd_node", None)

    def find(self, frame):
        """The place of an operator that is called from `frame`."""
        place = Place()
        modules = []
        marks = self._marks
        while frame is not None:
            code = frame.f_code
            mark = marks.get(id(code))
            if mark is None:
                mark = marks[id(code)] = self._mark(code)
            if mark:
                if mark == OWN:
                    if place.own is None:
                        place.own, place.line = code, frame.f_lineno
                elif mark == OTHER:
                    if place.own is None and place.via is None:
                        place.via, place.via_line = code, frame.f_lineno
                elif mark == _CALL:
                    modules.append(frame.f_locals.get("self"))
                elif mark == _OPTIMISER:
                    place.phase = place.phase or "optimiser"
                elif mark == _INITIALISER:
                    place.phase = "initialisation"
            frame = frame.f_back
        if modules:
            place.module = self._path(modules[0], modules[-1])
        self._link(place)
        return place

    def parameter(self, tensor):
        """The name of a parameter of a module that was called before, or None."""
        return self._parameters.get(id(tensor))

    def _mark(self, code):
        mark = self._own.kind(code)
        if mark:
            return mark
        file = code.co_filename
        if "/torch/optim/" in file and code.co_name == "step":
            return _OPTIMISER
        if file.endswith("/torch/nn/init.py") or code.co_name == "reset_parameters":
            return _INITIALISER
        return 0

    def _link(self, place):
        """Remember which autograd node a forward operator made; give a backward one the place of its node."""
        node = self._node() if self._node is not None else None
        if node is None:
            if self._sequence is not None:
                number = self._sequence()
                if number != self._last and number:
                    if len(self._nodes) > _MAX_NODES:
                        self._nodes.clear()
                    self._last = number
                    self._nodes[number - 1] = place
            return
        place.phase = "backward"
        place.node = node.name().rpartition("::")[2]
        number = node._sequence_nr()
        forward = self._nodes.get(number)
        if forward is not None:
            place.forward = forward
            place.module = forward.module or place.module
        elif place.node == "AccumulateGrad":
            place.module = self.parameter(node.variable)

    def _path(self, module, root):
        """The name of a module inside the outermost one that is running; its class for that one itself."""
        if id(root) not in self._roots or id(module) not in self._names:
            self._learn(root)
        return self._names.get(id(module)) or type(module).__name__

    def _learn(self, root):
        # Holding the root keeps the addresses of its parts from being given to others.
        self._roots[id(root)] = root
        for name, module in root.named_modules():
            if name:
                self._names[id(module)] = name
        for name, parameter in root.named_parameters():
            self._parameters[id(parameter)] = name
