"""What host code of a Triton file may do: look at shapes, allocate, launch. Arithmetic belongs in the kernel.

Only code that can run is judged: module level and what the entry reaches. Tests and benchmarks that a
file carries along, and its ``__main__`` block, never run here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from klineage.surface.triton_names import Names, Violation, forbidden, literal_lookup, stray_import


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IMPORTS = ("triton", "torch", "math", "typing", "__future__")
_TRITON_REFUSED = _words("triton._C triton.backends triton.compiler triton.experimental triton.profiler")
_TORCH_ALLOWED = _words(
    """
    Size Tensor __version__ autograd.Function autograd.function bfloat16 bool broadcast_shapes
    complex64 contiguous_format cuda._DeviceGuard cuda.current_device cuda.current_stream cuda.device
    cuda.device_count cuda.device_of cuda.get_device_capability cuda.get_device_name cuda.get_device_properties
    cuda.is_available cuda.synchronize device double dtype empty empty_like empty_strided finfo float
    float16 float32 float64 float8_e4m3fn float8_e5m2 full full_like half iinfo inference_mode int int16
    int32 int64 int8 is_complex is_floating_point is_tensor jit.ignore long no_grad ones ones_like promote_types
    strided uint8 version zeros zeros_like
    """
)
_TENSOR_HINTS = {"shape", "stride", "is_contiguous", "data_ptr", "dtype", "device", "element_size", "numel"}
_TENSOR_ALLOWED = _words(
    """
    T as_strided contiguous data_ptr detach device dim dtype element_size expand expand_as fill_ flatten
    get_device is_contiguous is_cuda is_floating_point itemsize layout mT movedim narrow nbytes ndim
    ndimension new_empty new_full new_ones new_zeros numel permute requires_grad reshape select shape
    size squeeze storage_offset stride swapaxes t transpose unbind unflatten unsqueeze untyped_storage
    view view_as zero_
    """
)
_TENSOR_RESULT = _words(
    """
    T contiguous detach expand flatten mT narrow new_empty new_full new_ones new_zeros permute reshape
    select squeeze t transpose unsqueeze view view_as
    """
)
_UNMISTAKABLE = _words(
    """
    add_ addmm addmm_ baddbmm bmm conv1d conv2d conv3d copy_ div_ einsum exp_ index_add_ layer_norm
    linear log_softmax matmul matmul_ mm mul_ rms_norm rsqrt_ scaled_dot_product_attention scatter_add_
    softmax softmax_ sub_
    """
)
_OF_ALLOWED = _words("itemsize is_floating_point is_complex is_signed cuda hip FunctionCtx type index")


def violations(
    tree: ast.Module, entry: str, jitted: Mapping[str, ast.AST], tensors: Iterable[str]
) -> Iterator[Violation]:
    """Every breach of the policy in code that can run, with its line. ``tensors``: names of buffers."""
    device, names = set(map(id, jitted.values())), Names(tree)
    reached = running(tree, entry)
    for header in _headers(tree, reached):
        yield from forbidden(header, names)
    for node in reached:
        yield from _imports(node)
        yield from forbidden(node, names)
        if id(node) in device:
            continue
        scope = _tensor_variables(node, set(tensors) if getattr(node, "name", "") == entry else set(), names)
        yield from _computations(node, scope, device, names)


def running(tree: ast.Module, entry: str) -> list[ast.stmt]:
    """Module-level statements that run at import, and the definitions that they or the entry can reach."""
    definitions = {
        node.name: node
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    statements = [n for n in tree.body if n not in definitions.values() and not _is_main_guard(n)]
    pending = [*statements, *([definitions[entry]] if entry in definitions else [])]
    reached: list[ast.stmt] = []
    while pending:
        node = pending.pop()
        if node in reached:
            continue
        reached.append(node)
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        pending += [definitions[name] for name in sorted(names) if name in definitions]
    return reached


def _headers(tree: ast.Module, reached: list[ast.stmt]) -> Iterator[ast.AST]:
    """What runs at import of definitions that nobody reaches: decorators, defaults, annotations, class bodies."""
    pending: list[ast.stmt] = [node for node in tree.body if node not in reached and not _is_main_guard(node)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ClassDef):
            yield ast.copy_location(
                ast.ClassDef(node.name, node.bases, node.keywords, [], node.decorator_list), node
            )
            pending += node.body
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.args
            yield from (*node.decorator_list, *([node.returns] if node.returns else []))
        else:
            yield node


def _is_main_guard(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.If)
        and not node.orelse
        and ast.unparse(node.test).replace('"', "'")
        in (
            "__name__ == '__main__'",
            "'__main__' == __name__",
        )
    )


def _imports(root: ast.AST) -> Iterator[Violation]:
    for node in ast.walk(root):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if not _importable(alias.name):
                    yield node.lineno, "import", f"imports {alias.name}; only {_listed()} are allowed"
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if node.level or not _importable(module):
                yield node.lineno, "import", f"imports from {module}; only {_listed()} are allowed"
                continue
            for alias in node.names:
                if module == "torch" and alias.name not in _TORCH_ALLOWED:
                    yield node.lineno, "host_compute", _compute(f"torch.{alias.name}")
                elif module not in ("torch", "__future__") and stray_import(module, alias.name):
                    yield node.lineno, "import", f"imports {alias.name} from {module}, which no kernel needs"


def _listed() -> str:
    return ", ".join(name for name in _IMPORTS if name != "__future__")


def _importable(module: str) -> bool:
    if module.split(".")[0] not in _IMPORTS or module.startswith("torch."):
        return False
    return not any(module == name or module.startswith(f"{name}.") for name in _TRITON_REFUSED)


def _compute(what: str) -> str:
    return f"computes with {what} on the host; arithmetic on tensors belongs in the kernel"


def _annotation(node: ast.arg) -> str:
    return ast.unparse(node.annotation) if node.annotation is not None else ""


def _tensor_variables(root: ast.AST, known: set[str], spelled: Names) -> set[str]:
    """Names that hold tensors in one function: buffers, parameters used as such, what is made of them."""
    names = set(known)
    for node in ast.walk(root):
        if isinstance(node, ast.arg) and "Tensor" in _annotation(node):
            names.add(node.arg)
        if (
            isinstance(node, ast.Attribute)
            and node.attr in _TENSOR_HINTS
            and isinstance(node.value, ast.Name)
        ):
            names.add(node.value.id)
    names -= spelled.modules.keys()
    for _ in range(2):  # a chain of assignments against the order of the text is not worth more passes
        for node in ast.walk(root):
            if isinstance(node, ast.Assign) and _is_tensor(node.value, names, spelled):
                names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return names


def _is_tensor(node: ast.expr, tensors: set[str], names: Names) -> bool:
    if isinstance(node, ast.Name):
        return node.id in tensors
    if isinstance(node, ast.Subscript):
        return _is_tensor(node.value, tensors, names)
    if isinstance(node, ast.Call):
        dotted = names.dotted(node.func)
        if dotted.startswith("torch."):
            return dotted[6:].split("_")[0] in ("empty", "zeros", "ones", "full")
        return isinstance(node.func, ast.Attribute) and _is_tensor(node.func, tensors, names)
    if isinstance(node, ast.Attribute):
        return node.attr in _TENSOR_RESULT and _is_tensor(node.value, tensors, names)
    return False


def _computations(root: ast.AST, tensors: set[str], device: set[int], names: Names) -> Iterator[Violation]:
    pending: list[ast.AST] = [root]
    while pending:
        node = pending.pop()
        if id(node) in device:
            continue
        found = _computation(literal_lookup(node) or node, tensors, names)
        if found:
            yield getattr(node, "lineno", 0), "host_compute", _compute(found)
        complete = isinstance(node, ast.Attribute) and names.dotted(node).startswith("torch.")
        if not complete:
            pending.extend(ast.iter_child_nodes(node))


def _computation(node: ast.AST, tensors: set[str], names: Names) -> str:
    """What ``node`` itself computes on the host, or ""."""
    if isinstance(node, (ast.Attribute, ast.Name)):
        dotted = names.dotted(node)
        if dotted.startswith("torch."):
            return "" if _torch_allowed(dotted[6:]) else dotted
    if isinstance(node, ast.Attribute):
        if _is_tensor(node.value, tensors, names) and node.attr not in _TENSOR_ALLOWED:
            return f".{node.attr}"
        if node.attr in _UNMISTAKABLE and not dotted.startswith("triton."):
            return f".{node.attr}"
    operands: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        operands = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        operands = [node.operand]
    elif isinstance(node, ast.AugAssign):
        operands = [node.target]
    elif isinstance(node, ast.Assign):
        operands = [t.value for t in node.targets if isinstance(t, ast.Subscript)]
    if any(_is_tensor(operand, tensors, names) for operand in operands):
        return f"{ast.unparse(node)[:60]!r}"
    return ""


def _torch_allowed(name: str) -> bool:
    """``name`` itself, or a plain property of an allowed name (``float32.itemsize``)."""
    parent, _, last = name.rpartition(".")
    return name in _TORCH_ALLOWED or (parent in _TORCH_ALLOWED and last in _OF_ALLOWED)
