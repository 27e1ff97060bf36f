"""What names of a Triton file stand for: which modules they reach, and what nobody may reach through them."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

Violation = tuple[int, str, str]  # line, reason, message


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Other modules can be reached through almost any module that imported them; these two names mean something else.
_STRAY = (frozenset(sys.stdlib_module_names) | _words("numpy np torch triton_kernels builtins")) - _words(
    "math random"
)
_TRITON = _words(
    """
    __version__ Config TensorWrapper autotune cdiv constexpr_function heuristics jit must_use_result next_power_of_2
    reinterpret set_allocator runtime.driver runtime.jit.jit runtime.autotuner.autotune runtime.autotuner.Config
    runtime.autotuner.heuristics runtime.Config runtime.autotune runtime.heuristics runtime.reinterpret
    testing.Benchmark testing.perf_report tools.tensor_descriptor.TensorDescriptor tools.experimental_descriptor
    """
)
_NEVER = _words(
    "__import__ breakpoint delattr eval exec globals locals memoryview open setattr vars exit quit"
)
_UNLESS_BOUND = _words("compile input")
_LOOKUPS = ("getattr", "hasattr")
_FRAMES = _words(
    """
    ag_code ag_frame co_code co_consts cr_code cr_frame f_back f_builtins f_code f_globals f_lasti f_lineno f_locals
    f_trace func_globals gi_code gi_frame gi_yieldfrom mro tb_frame tb_lasti tb_next
    """
)
_HOOKS = _words(
    "add_pre_run_hook pre_run_hooks launch_enter_hook launch_exit_hook as_subclass _make_subclass handle set_active reset_active"
)
_TYPING = _words(
    "ForwardRef evaluate_forward_ref get_overloads get_type_hints"
)  # these run text, or find functions
_FORMAT = re.compile(r"\{[^{}]*\.__")
_METHODS = _words(
    "__init__ __call__ __enter__ __exit__ __repr__ __str__ __len__ __getitem__ __hash__ __eq__ __post_init__"
)
_NAMES = _words("__name__ __all__ __version__ __doc__")


class Names:
    """The names of one file. ``modules``: name to dotted path. ``defined``: functions and classes of the file."""

    def __init__(self, tree: ast.Module) -> None:
        self.modules: dict[str, str] = {}
        self.imported: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    path = alias.name if alias.asname else alias.name.split(".")[0]
                    self.modules[alias.asname or path] = path
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    self.imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        self.defined = {
            node.name
            for node in tree.body
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        }
        self.bound = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)} | {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }

    def dotted(self, node: ast.expr) -> str:
        """``torch.cuda.device`` for such an expression under any name; "" for what is no name with attributes."""
        parts: list[str] = []
        current: ast.expr = node
        while isinstance(current, ast.Attribute):
            parts.append(current.attr)
            current = current.value
        if not isinstance(current, ast.Name):
            return ""
        first = self.modules.get(current.id) or self.imported.get(current.id) or current.id
        return ".".join([first, *reversed(parts)])

    def rooted(self, node: ast.expr) -> bool:
        """Whether an expression is an attribute of something imported."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        return isinstance(node, ast.Name) and (node.id in self.modules or node.id in self.imported)


def literal_lookup(node: ast.AST) -> ast.Attribute | None:
    """``getattr(x, "name")`` as the attribute that it is."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr"):
        return None
    if (
        len(node.args) < 2
        or not isinstance(node.args[1], ast.Constant)
        or not isinstance(node.args[1].value, str)
    ):
        return None
    found = ast.Attribute(node.args[0], node.args[1].value, ast.Load())
    return ast.copy_location(found, node)


def forbidden(root: ast.AST, names: Names) -> Iterator[Violation]:
    """What no kernel file needs, wherever it stands: names that lead out of the file, and writes to what it imports."""
    bases = {id(n.value) for n in ast.walk(root) if isinstance(n, ast.Attribute)}
    asked = {
        id(n.args[0])
        for n in ast.walk(root)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in _LOOKUPS and n.args
    }
    called = {id(n.func) for n in ast.walk(root) if isinstance(n, ast.Call)}
    for node in ast.walk(root):
        line = getattr(node, "lineno", 0)
        found = ""
        if isinstance(node, ast.Name):
            found = _name(node, names, id(node) in bases or id(node) in asked, id(node) in called)
        elif isinstance(node, ast.Attribute):
            found = _attribute(node, names, id(node) in bases)
        elif isinstance(node, ast.Call):
            lookup = literal_lookup(node)
            found = _attribute(lookup, names, False) if lookup else _lookup(node)
        elif isinstance(node, ast.ClassDef):
            found = _class(node, names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _FORMAT.search(node.value):
            found = "has a format that reaches for private attributes"
        if found:
            yield line, "forbidden", found


def _name(node: ast.Name, names: Names, base: bool, called: bool) -> str:
    if node.id.startswith("__") and node.id not in _NAMES:
        return f"reaches for {node.id}"
    if node.id in _NEVER or (node.id in _UNLESS_BOUND and node.id not in names.bound):
        return f"uses {node.id}(), which no kernel file needs"
    if node.id in _LOOKUPS and not called:
        return f"uses {node.id} as a value"
    if node.id in names.modules and not base and isinstance(node.ctx, ast.Load):
        return f"uses the module {node.id} as a value"
    return ""


def _lookup(node: ast.Call) -> str:
    if not isinstance(node.func, ast.Name) or node.func.id not in _LOOKUPS:
        return ""
    literal = len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
    return "" if literal else f"calls {node.func.id}() with a name that is not a literal"


def _attribute(node: ast.Attribute, names: Names, base: bool) -> str:
    if (
        (node.attr.startswith("__") and node.attr != "__version__")
        or node.attr in _FRAMES
        or node.attr in _HOOKS
    ):
        return f"reaches for {node.attr}"
    if not isinstance(node.ctx, ast.Load):
        root = node.value
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        if names.rooted(node) or (isinstance(root, ast.Name) and root.id in names.defined):
            return f"replaces {ast.unparse(node)}, which other code uses"
    if not names.rooted(node):
        return ""
    path = names.dotted(node)
    stray = next((part for part in path.split(".")[1:] if part in _STRAY), "")
    if stray:
        return f"reaches for {stray} through {ast.unparse(node)}"
    if path.startswith("typing.") and path.split(".")[1] in _TYPING:
        return f"uses {path}, which no kernel needs"
    if not base and path.startswith("triton.") and not allowed_of_triton(path):
        return f"uses {path}, which no kernel needs"
    return ""


def allowed_of_triton(path: str) -> bool:
    """Whether a kernel file may use ``triton.x.y``: the language, and what launches and tunes."""
    name = path.removeprefix("triton.")
    if name.split(".")[0] == "language":
        return not any(part.startswith("_") for part in name.split("."))
    return any(name == known or name.startswith(f"{known}.") for known in _TRITON)


def stray_import(module: str, name: str) -> bool:
    """Whether ``from module import name`` takes something that only happens to be there."""
    if name in _STRAY or (module == "typing" and name in _TYPING):
        return True
    return (
        module.split(".")[0] == "triton"
        and module != "triton"
        and not (allowed_of_triton(f"{module}.{name}") or allowed_of_triton(f"{module}.{name}.x"))
    )


def _class(node: ast.ClassDef, names: Names) -> str:
    if any(names.dotted(base) in ("torch.Tensor", "torch.nn.Parameter") for base in node.bases):
        return f"{node.name} is a kind of tensor of its own"
    if node.keywords:
        return f"{node.name} has a metaclass or other class arguments"
    for method in node.body:
        if (
            isinstance(method, ast.FunctionDef)
            and method.name.startswith("__")
            and method.name not in _METHODS
        ):
            return f"{node.name} defines {method.name}"
    return ""
