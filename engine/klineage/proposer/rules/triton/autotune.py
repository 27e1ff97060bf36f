"""Autotuning: several configurations tried at run time become the one that is pinned."""

from __future__ import annotations

from collections.abc import Mapping

from klineage.kernel import Feature, Kernel
from klineage.proposer.rules.rule import NotApplicable, Rewrite, Rule, Site, setting
from klineage.proposer.rules.triton.code import jit_functions, launches, value_of
from klineage.surface.autotune import (
    LAUNCH_OPTIONS,
    Config,
    arguments,
    configurations,
    decorator,
    pinned,
)
from klineage.surface.lists import add_element, remove_elements
from klineage.surface.tree import Edit, Unit, parse_kernel


def detect(kernel: Kernel) -> tuple[Site, ...]:
    unit = parse_kernel(kernel)
    sites = []
    for function in jit_functions(unit):
        node = decorator(unit, function)
        config = pinned(kernel, function)
        if node is None or not config:
            continue
        offered = configurations(unit, function)
        settings = {f"config.{i}": _spelled(c) for i, c in enumerate(offered or (config,), start=1)}
        settings["pinned"] = _spelled(config)
        given = arguments(unit, node)
        rest = {
            "key" if name == "1" else name: value
            for name, value in given.items()
            if name not in ("0", "configs")
        }
        settings |= {name: " ".join(unit.text(value).split()) for name, value in rest.items()}
        sites.append(Site(function.locus, (Feature(function.locus, "autotune"),), settings))
    return tuple(sites)


def remove(kernel: Kernel, site: Site) -> Rewrite:
    unit = parse_kernel(kernel)
    function = unit.function_at(site.locus)
    node = decorator(unit, function) if function is not None else None
    if function is None or node is None:
        raise NotApplicable("the function is not autotuned")
    edits = [Edit(*unit.lines_of(node))]
    for launch in launches(unit, function.name):
        missing = [(n, v) for n, v in pinned(kernel, function) if launch.keyword(unit, n) is None]
        text = ", ".join(f"{n}={v}" for n, v in missing)
        if text:
            edits.append(add_element(unit, launch.arguments, text))
    if len(edits) == 1 and not launches(unit, function.name):
        raise NotApplicable("the kernel is not launched in this file, so nothing can pass its configuration")
    return Rewrite(tuple(edits), ())


def apply(kernel: Kernel, locus: str, settings: Mapping[str, str]) -> tuple[Edit, ...]:
    unit = parse_kernel(kernel)
    function = unit.function_at(locus)
    if function is None or decorator(unit, function) is not None:
        raise NotApplicable("no kernel without autotuning at this place")
    numbered = sorted(n for n in settings if n.startswith("config."))
    configs = [_parsed(settings[n]) for n in numbered] or [_parsed(setting(settings, "pinned"))]
    tuned = {n for config in configs for n, _ in config}
    edits: list[Edit] = []
    for launch in launches(unit, function.name):
        passed = [k for n in sorted(tuned) if (k := launch.keyword(unit, n)) is not None]
        if any(not unit.text(value_of(k)).isdigit() for k in passed):
            raise NotApplicable("the launch computes a constant that autotuning would choose")
        edits += remove_elements(unit, launch.arguments, passed)
    rest = [(n, v) for n, v in settings.items() if n != "pinned" and not n.startswith("config.")]
    start = unit.line_start(function.node.start_byte)
    edits.append(Edit(start, start, _decorator_text(unit, start, configs, rest)))
    return tuple(edits)


def _decorator_text(unit: Unit, start: int, configs: list[Config], rest: list[tuple[str, str]]) -> bytes:
    lines = ["@triton.autotune(", "    configs=["]
    lines += [f"        {_config_text(c)}," for c in configs]
    lines += ["    ],", *(f"    {name}={value}," for name, value in rest), ")"]
    newline, indent = unit.newline(start), unit.indent(start)
    return b"".join(indent + line.encode("utf-8", "surrogateescape") + newline for line in lines)


def _config_text(config: Config) -> str:
    constants = ", ".join(f'"{n}": {v}' for n, v in config if n not in LAUNCH_OPTIONS)
    options = "".join(f", {n}={v}" for n, v in config if n in LAUNCH_OPTIONS)
    return f"triton.Config({{{constants}}}{options})"


def _spelled(config: Config) -> str:
    return ", ".join(f"{n}={v}" for n, v in config)


def _parsed(text: str) -> Config:
    pairs = [part.strip().partition("=") for part in text.split(",")]
    if any(not value.isdigit() for _, _, value in pairs):
        raise NotApplicable(f"not a configuration: {text!r}")
    return tuple((name, int(value)) for name, _, value in pairs)


AUTOTUNE = Rule(
    name="autotune",
    action="autotune",
    surface="triton",
    title="Pin one configuration instead of autotuning",
    adds="Autotune over several configurations",
    at="Where the kernel is launched, and the decorator above its definition",
    rationale="The kernel is tuned at run time over several configurations; the pinned one becomes plain "
    "constants of the launch.",
    preconditions=(
        "Pipeline: every configuration offered must compile and fit the platform's shared memory and "
        "registers, or tuning fails at the first launch.",
        "Layout: the kernel must be correct for every tile size offered, so masks or wrapping cover "
        "partial tiles.",
        "Storage: the kernel may be run many times while tuning, so it must not accumulate into its outputs.",
    ),
    detect=detect,
    remove=remove,
    apply=apply,
)
