"""Break one thing about a state: a size, a stride, an address, a type, a feature, the platform, or a setting.

Each kind changes the workload, the platform or both kernels alike, so that what differs between the kernels is still the
optimization alone. ``setting`` is the exception: it changes the optimization itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from klineage.errors import KlineageError
from klineage.kernel import Kernel, Surface
from klineage.platform import parse as parse_platform
from klineage.proposer.rules import NotApplicable, proposals, taken_out, why_not
from klineage.skill.checks.facts import ITEMSIZE, tensors
from klineage.skill.probe.renumbering import Untestable, changed_by, is_relative, renumbered
from klineage.skill.probe.state import State
from klineage.workload import Workload, parse
from klineage.workload.constants import Unknown

_NEAREST = (1, -1, 2, -2, 3, -3)  # how far an extent is moved to break the alignment of rows
_MOST_SITES = 16
_MOST_ELEMENTS = 4  # times as many as the largest size that is checked has: more would not be judged in time


def violated(state: State, change: str, settings: Mapping[str, str]) -> State:
    """The state with one thing broken. Raises Untestable.

    The settings of each kind: ``size`` dim or ``*``, value (of every size of the workload); ``stride`` buffer, bytes (rows no longer
    begin at multiples of it); ``misalign`` buffer or ``*``, bytes (from an aligned base); ``dtype`` element; ``feature``
    name; ``platform`` platform, below the state's own; ``setting`` name or ``*``, value. A value is a whole number, or says
    how it differs from the instance's own: ``+1``, ``-1``, ``x4``, ``/4``.
    """
    if change not in _CHANGES:
        raise Untestable(f"there is no change {change!r}; there are {', '.join(_CHANGES)}")
    wanted, make = _CHANGES[change]
    missing = [name for name in wanted if not settings.get(name, "").strip()]
    if missing:
        raise Untestable(
            f"a {change} probe needs the setting{'s' * (len(missing) > 1)} {' and '.join(missing)}"
        )
    try:
        return make(state, settings)
    except KlineageError as error:
        raise Untestable(str(error)) from error


def spoken(change: str, settings: Mapping[str, str]) -> str:
    """A violation in a few words: ``k = 511``, ``x 4 bytes off alignment``."""
    get = settings.get
    value = get("value", "")
    told = value if is_relative(value) else f"= {value}"
    dim = "every dimension" if get("dim") == "*" else get("dim")
    return {
        "size": f"{dim} {told}",
        "stride": f"rows of {get('buffer')} off multiples of {get('bytes')} bytes",
        "misalign": f"{'every buffer' if get('buffer') == '*' else get('buffer')} {get('bytes')} bytes off alignment",
        "dtype": f"{get('element')} elements",
        "feature": f"without {get('name')}",
        "platform": f"on {get('platform')}",
        "setting": f"{'every number of it' if get('name') == '*' else get('name')} {told}",
    }.get(change, change)


def _integer(settings: Mapping[str, str], name: str, least: int = 1) -> int:
    try:
        value = int(settings[name], 0)
    except ValueError:
        raise Untestable(f"{name} is {settings[name]!r}, which is no whole number") from None
    if value < least:
        raise Untestable(f"{name} is {value}; the least is {least}")
    return value


def _redeclared(workload: Workload, **constants: object) -> Workload:
    """The workload with constants of its file given other values, as a person would: the last assignment counts."""
    lines = "".join(f"{name} = {value!r}\n" for name, value in constants.items())
    source = workload.source.rstrip(b"\n") + b"\n\n# Changed by a probe.\n" + lines.encode()
    return parse(source, name=workload.name, path=workload.path)


def resized(workload: Workload, change: Callable[[Mapping[str, int]], Mapping[str, int]]) -> Workload:
    """The workload with every size changed, the hidden one too."""
    sizes = {name: dict(change(dims)) for name, dims in workload.sizes.items()}
    hidden = {"HIDDEN": dict(change(workload.hidden))} if workload.hidden else {}
    return _redeclared(workload, SIZES=sizes, **hidden)


def _size(state: State, settings: Mapping[str, str]) -> State:
    dim, known = settings["dim"], state.workload.dims
    if dim not in ("*", *known):
        raise Untestable(f"{state.workload.name} has no dimension {dim}; it has {', '.join(known)}")
    wanted = known if dim == "*" else (dim,)
    changed = changed_by(settings["value"])
    if not is_relative(settings["value"]) and changed(0) < 1:
        raise Untestable("value is 0; the least is 1")
    workload = resized(state.workload, lambda dims: {**dims, **{d: max(1, changed(dims[d])) for d in wanted}})
    _refuse_large(state, workload)
    return replace(state, workload=workload)


def _refuse_large(state: State, workload: Workload) -> None:
    """A size far beyond what the workload declares is not judged in the time of a gate."""
    most = _elements(state.workload, state.after.surface)
    if _elements(workload, state.after.surface) > _MOST_ELEMENTS * most:
        raise Untestable(
            f"that size has more than {_MOST_ELEMENTS} times the elements of the largest that is checked"
        )


def _elements(workload: Workload, surface: Surface) -> int:
    checked = [name for name in ("small", "ragged", "bench") if name in workload.sizes]
    try:
        every = [t for name in checked for t in tensors(workload, surface, workload.sizes[name]).values()]
    except Unknown:
        return 0  # the gate's own limits must do
    return max((t.elements for t in every), default=0)


def _stride(state: State, settings: Mapping[str, str]) -> State:
    buffer, bytes_ = settings["buffer"], _integer(settings, "bytes", 2)
    surface = state.after.surface
    dim = inner_dim(state, buffer)

    def change(dims: Mapping[str, int]) -> Mapping[str, int]:
        for by in (0, *_NEAREST):
            moved = {**dims, dim: dims[dim] + by}
            if moved[dim] > 0 and _pitch(state.workload, surface, moved, buffer) % bytes_:
                return moved
        raise Untestable(f"every row of {buffer} begins at a multiple of {bytes_} bytes whatever {dim} is")

    return replace(state, workload=resized(state.workload, change))


def _pitch(workload: Workload, surface: Surface, dims: Mapping[str, int], buffer: str) -> int:
    """Bytes from one innermost row of a buffer to the next."""
    found = tensors(workload, surface, dims)[buffer]
    return found.shape[-1] * ITEMSIZE[found.type]


def inner_dim(state: State, buffer: str) -> str:
    """The dimension that the length of a buffer's rows follows, one for one."""
    workload, surface = state.workload, state.after.surface
    dims = workload.sizes["small"]
    try:
        known = tensors(workload, surface, dims)
        if buffer not in known:
            raise Untestable(f"{workload.name} has no buffer {buffer}; it has {', '.join(known)}")
        if len(known[buffer].shape) < 2:
            raise Untestable(f"{buffer} has no rows: it has one axis")
        step = ITEMSIZE[known[buffer].type]
        for dim in workload.dims:
            longer = {**dims, dim: dims[dim] + 1}
            if _pitch(workload, surface, longer, buffer) - _pitch(workload, surface, dims, buffer) == step:
                return dim
    except Unknown as error:
        raise Untestable(
            f"the shapes of {workload.name} cannot be read without running it ({error})"
        ) from error
    raise Untestable(f"no dimension of {workload.name} moves the rows of {buffer} by one element")


def _misalign(state: State, settings: Mapping[str, str]) -> State:
    wanted, bytes_ = settings["buffer"], _integer(settings, "bytes")
    try:
        known = tensors(state.workload, state.after.surface, state.workload.sizes["small"])
    except Unknown as error:
        raise Untestable(
            f"the buffers of {state.workload.name} cannot be read without running it ({error})"
        ) from error
    names = list(known) if wanted == "*" else [name.strip() for name in wanted.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Untestable(f"{state.workload.name} has no buffer {unknown[0]}; it has {', '.join(known)}")
    offsets = {name: -(-bytes_ // ITEMSIZE[known[name].type]) * ITEMSIZE[known[name].type] for name in names}
    return replace(state, workload=_redeclared(state.workload, OFFSETS={**state.workload.offsets, **offsets}))


def _dtype(state: State, settings: Mapping[str, str]) -> State:
    element = {**state.workload.element, state.after.surface: settings["element"]}
    if element == state.workload.element:
        raise Untestable(f"the elements are {settings['element']} already")
    return replace(state, workload=_redeclared(state.workload, ELEMENT=element))


def _platform(state: State, settings: Mapping[str, str]) -> State:
    wanted, own = parse_platform(settings["platform"]), parse_platform(state.platform)
    if wanted.vendor != own.vendor:
        raise Untestable(f"{wanted} is of another kind than {own}, and the kernel is not for it")
    if wanted == own or not own.satisfies(wanted):
        raise Untestable(f"{wanted} is not below {own}, the card's own platform")
    if wanted.vendor != "cpu":
        return replace(state, platform=str(wanted))
    flag = f"-march={wanted.architecture}"
    before, after = (replace(k, flags=(*_without_march(k), flag)) for k in (state.before, state.after))
    return replace(state, before=before, after=after, platform=str(wanted))


def _without_march(kernel: Kernel) -> tuple[str, ...]:
    """The kernel's flags. One that declares its own level cannot be built for another."""
    declared = [flag for flag in kernel.flags if flag.startswith("-march=")]
    if declared:
        raise Untestable(f"the kernel declares {declared[0]} itself")
    return kernel.flags


def _feature(state: State, settings: Mapping[str, str]) -> State:
    name = settings["name"]
    before, after = (_taken_out(kernel, name) for kernel in (state.before, state.after))
    return replace(state, before=before, after=after)


def _taken_out(kernel: Kernel, name: str) -> Kernel:
    """The kernel without a mechanism, everywhere that rules see it: as they would offer it, else whatever stands on it."""
    found = kernel
    for _ in range(_MOST_SITES):  # each removal may uncover another site
        candidate = next((c for c in proposals(found) if any(f.name == name for f in c.removes)), None)
        if candidate is None:
            break
        found = candidate.kernel(found)
    if found.hash != kernel.hash:
        return found
    seen = [n for n in why_not(kernel) if any(f.name == name for f in n.site.removes)]
    why = seen[0].reason if seen else "no rule sees it there"
    for site in seen:
        try:
            return taken_out(site.rule.name, kernel, site.site.removes)
        except NotApplicable as error:
            why = error.reason
    raise Untestable(f"no rule takes {name} out of the card's own state: {why}")


def _setting(state: State, settings: Mapping[str, str]) -> State:
    return renumbered(state, settings["name"], settings["value"])


_Make = Callable[[State, Mapping[str, str]], State]
_CHANGES: dict[str, tuple[tuple[str, ...], _Make]] = {
    "size": (("dim", "value"), _size),
    "stride": (("buffer", "bytes"), _stride),
    "misalign": (("buffer", "bytes"), _misalign),
    "dtype": (("element",), _dtype),
    "feature": (("name",), _feature),
    "platform": (("platform",), _platform),
    "setting": (("name", "value"), _setting),
}

#: What each kind of change is told by.
SETTINGS: dict[str, tuple[str, ...]] = {change: names for change, (names, _) in _CHANGES.items()}
