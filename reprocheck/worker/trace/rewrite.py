"""The workload's own functions with hooks around their calls and operators, so that numpy and cupy are traced too.

Their operators run in C and no library offers a way in, so the places where the workload calls them are instrumented:

    np.dot(a, b)   ->  end(7, first(7, np.dot)(given(a), given(b)))
    a @ b          ->  binary("@", a, b)
    x += y         ->  x = inplace("+=", x, y)

Order of evaluation, line numbers and what a callee sees of its caller stay as they are: the call itself is still made
by the user's own frame (numexpr, for one, looks there for variables). Nothing is changed on disk and no byte code is
cached. What other compilers read (a function under a decorator such as `jit`) is left alone.
"""

import ast
import gc
import types

__all__ = ["BINARY", "HOOKS", "INPLACE", "UNARY", "Rewriter"]

HOOKS = ("first", "call", "given", "star", "stars", "end", "binary", "unary", "inplace")
"""The hooks, found in `builtins` under `hook_name` of these."""

BINARY = {
    "Add": ("+", "add"),
    "Sub": ("-", "sub"),
    "Mult": ("*", "mul"),
    "MatMult": ("@", "matmul"),
    "Div": ("/", "truediv"),
    "FloorDiv": ("//", "floordiv"),
    "Mod": ("%", "mod"),
    "Pow": ("**", "pow"),
    "LShift": ("<<", "lshift"),
    "RShift": (">>", "rshift"),
    "BitAnd": ("&", "and_"),
    "BitOr": ("|", "or_"),
    "BitXor": ("^", "xor"),
}
"""Node of the syntax tree -> sign, and the function of `operator`."""
INPLACE = {sign + "=": "i" + name.rstrip("_") for sign, name in BINARY.values()}
UNARY = {"USub": ("-", "neg"), "UAdd": ("+", "pos"), "Invert": ("~", "invert")}

# Calls that give nothing to compare, or that look at the frame they are called from.
_LEFT_ALONE = frozenset(
    (
        *("super", "locals", "globals", "vars", "dir", "eval", "exec", "compile", "isinstance", "issubclass", "len"),
        *("range", "print", "type", "hasattr", "getattr", "setattr", "delattr", "enumerate", "zip", "iter", "next"),
        *("repr", "str", "format", "id", "callable", "input", "open", "breakpoint"),
    )
)
_COMPILERS = (
    "compile",
    "jit",
    "vectorize",
    "cfunc",
    "stencil",
    "kernel",
    "fuse",
    "script",
    "triton",
    "taichi",
    "pythran",
    "transonic",
)


def hook_name(name):
    """The global name of a hook: no workload has it, and outputs taken from globals leave it out."""
    return "__reprocheck_%s__" % name


class Rewriter:
    """Rewrites source, and gives functions that exist already the rewritten code; `restore` takes it back."""

    def __init__(self, own):
        """`own(file)` says whether code of a file is the workload's."""
        self._own = own
        self._sites = 0
        self._replaced = []
        self._codes = {}

    def compile(self, source, file):
        """The code of a module's source, with hooks."""
        tree = ast.parse(source, file)
        hooked = _Hooked(self._sites)
        tree = ast.fix_missing_locations(hooked.visit(tree))
        self._sites = hooked.sites
        return compile(tree, file, "exec", dont_inherit=True)

    def functions(self):
        """Give every function of the workload that exists its rewritten code."""
        functions = [item for item in gc.get_objects() if type(item) is types.FunctionType]
        own = {file for file in {function.__code__.co_filename for function in functions} if self._own(file)}
        for function in functions:
            code = function.__code__
            if code.co_filename not in own:
                continue
            new = self._code(code)
            if (
                new is not None
                and new is not code
                and new.co_freevars == code.co_freevars
                and new.co_flags == code.co_flags
            ):
                self._replaced.append((function, code))
                function.__code__ = new

    def restore(self):
        """Give the functions their own code back."""
        while self._replaced:
            function, code = self._replaced.pop()
            function.__code__ = code

    def _code(self, code):
        file = code.co_filename
        if file not in self._codes:
            self._codes[file] = {}
            try:
                with open(file, "rb") as stream:
                    module = self.compile(stream.read(), file)
            except (OSError, SyntaxError, ValueError):
                return None
            _collect(module, self._codes[file])
        return self._codes[file].get((code.co_name, code.co_firstlineno, code.co_varnames[: code.co_argcount]))


def _collect(code, found):
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            key = (constant.co_name, constant.co_firstlineno, constant.co_varnames[: constant.co_argcount])
            # Two lambdas on one line can't be told apart: neither is replaced.
            found[key] = None if key in found else constant
            _collect(constant, found)


class _Hooked(ast.NodeTransformer):
    """Puts the hooks in. A call that is inside no other one has the hook `first`, the others `call`."""

    def __init__(self, sites):
        self.sites = sites
        self._depth = 0

    def _hook(self, node, name, *arguments):
        values = [item if isinstance(item, ast.AST) else ast.Constant(value=item) for item in arguments]
        function = ast.Name(id=hook_name(name), ctx=ast.Load())
        return ast.copy_location(ast.Call(func=function, args=values, keywords=[]), node)

    def _function(self, node):
        if any(mark in name.lower() for name in _decorators(node) for mark in _COMPILERS):
            return node
        # Only the body: decorators, defaults and annotations run elsewhere or mean something else.
        depth, self._depth = self._depth, 0
        node.body = [self.visit(item) for item in node.body]
        self._depth = depth
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _function  # noqa: N815 - ast's names

    def visit_JoinedStr(self, node):
        return node

    def visit_AnnAssign(self, node):
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in _LEFT_ALONE:
            return self.generic_visit(node)
        self.sites += 1
        site, begin = self.sites, "call" if self._depth else "first"
        self._depth += 1
        function = self.visit(node.func)
        arguments = []
        for item in node.args:
            if isinstance(item, ast.Starred):
                value = self._hook(item, "star", self.visit(item.value))
                arguments.append(ast.copy_location(ast.Starred(value=value, ctx=ast.Load()), item))
            else:
                arguments.append(self._hook(item, "given", self.visit(item)))
        keywords = []
        for item in node.keywords:
            value = self.visit(item.value)
            hooked = (
                self._hook(value, "stars", value) if item.arg is None else self._hook(value, "given", value, item.arg)
            )
            keywords.append(ast.keyword(arg=item.arg, value=hooked))
        self._depth -= 1
        call = ast.Call(func=self._hook(node, begin, site, function), args=arguments, keywords=keywords)
        return self._hook(node, "end", site, ast.copy_location(call, node))

    def visit_BinOp(self, node):
        self.generic_visit(node)
        return self._hook(node, "binary", BINARY[type(node.op).__name__][0], node.left, node.right)

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        found = UNARY.get(type(node.op).__name__)
        if found is None or isinstance(node.operand, ast.Constant):
            return node
        return self._hook(node, "unary", found[0], node.operand)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            # `a[i()] += f()` evaluates in an order that no call can keep.
            return node
        before = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node.target)
        value = self._hook(node, "inplace", BINARY[type(node.op).__name__][0] + "=", before, node.value)
        return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)


def _decorators(node):
    for decorator in node.decorator_list:
        for part in ast.walk(decorator):
            if isinstance(part, ast.Name):
                yield part.id
            elif isinstance(part, ast.Attribute):
                yield part.attr
