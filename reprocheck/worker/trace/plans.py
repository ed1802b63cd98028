"""What is known of a torch operator before it runs: its name, what it writes, and whether it computes anything."""

__all__ = ["Plan", "plain_text", "tensors_in"]

_UNINITIALISED = ("aten::empty", "aten::new_empty", "aten::resize_", "aten::_efficientzerotensor")
_PLUMBING = ("aten::detach", "aten::alias", "aten::lift_fresh", "aten::set_data", "profiler::", "prim::", "aten::sym_")
"""Operators that move a handle and no number."""
_VIEWS = ("aten::_unsafe_view", "aten::_reshape_alias")
"""Views that their schema does not tell."""
_FILLING = frozenset(
    "aten::%s_" % name
    for name in (
        "copy",
        "fill",
        "zero",
        "uniform",
        "normal",
        "bernoulli",
        "random",
        "exponential",
        "geometric",
        "cauchy",
    )
) | {"aten::log_normal_"}
"""In-place operators that do not read what they overwrite: fresh memory goes in."""
_PLAIN = (int, float, bool, complex, str, type(None))


class Plan:
    """How an operator is recorded.

    `writes` are the names of arguments it changes, `fills` those that it only fills (`out=`, `uniform_`), whose values
    before do not matter. A `view` computes nothing. `blank` outputs hold whatever the memory held. `random` ones draw.
    `plumbing` is not recorded.
    """

    __slots__ = ("blank", "fills", "name", "names", "plumbing", "random", "view", "writes")

    def __init__(self, torch, func):
        schema = getattr(func, "_schema", None)
        if schema is None:
            # A higher order operator has no schema.
            self.name, self.names, self.writes, self.fills = str(func.name()), (), (), ()
            self.view = self.blank = self.random = self.plumbing = False
            return
        self.plumbing = schema.name.startswith(_PLUMBING)
        overload = func._overloadname
        self.name = schema.name if overload in ("default", "") else "%s.%s" % (schema.name, overload)
        arguments = schema.arguments
        self.names = tuple(argument.name for argument in arguments)
        written = [
            argument for argument in arguments if argument.alias_info is not None and argument.alias_info.is_write
        ]
        filled = [argument for argument in written if argument.kwarg_only or schema.name in _FILLING]
        self.fills = tuple(argument.name for argument in filled)
        self.writes = tuple(argument.name for argument in written if argument not in filled)
        alias = any(result.alias_info is not None for result in schema.returns)
        self.view = not written and (alias or schema.name in _VIEWS)
        self.blank = schema.name.startswith(_UNINITIALISED)
        tag = getattr(torch.Tag, "nondeterministic_seeded", None)
        self.random = tag is not None and tag in func.tags


def tensors_in(tensor_type, values, found):
    """Append the tensors among arguments, also those inside lists and tuples, to `found`."""
    for value in values:
        if isinstance(value, tensor_type):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            tensors_in(tensor_type, value, found)
        elif isinstance(value, dict):
            tensors_in(tensor_type, value.values(), found)


def plain_text(tensor_type, args, kwargs):
    """The arguments that are no tensors, as text that is equal for equal arguments in every process."""
    parts = [_text(tensor_type, value) for value in args]
    parts += [name + "=" + _text(tensor_type, value) for name, value in kwargs.items()]
    while parts and parts[-1] == "_":
        parts.pop()
    return ", ".join(parts)


def _text(tensor_type, value):
    if isinstance(value, tensor_type):
        return "_"
    if type(value) in _PLAIN:
        return repr(value)
    if isinstance(value, (list, tuple)):
        if all(isinstance(item, tensor_type) for item in value):
            return "_"
        return "[" + ", ".join([_text(tensor_type, item) for item in value]) + "]"
    module = type(value).__module__
    if module == "torch" and type(value).__name__ in ("dtype", "device", "layout", "memory_format"):
        return str(value)
    # Generators, graph modules and the like: an address would differ in every process.
    return type(value).__name__
