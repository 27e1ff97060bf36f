"""Cards of every kind, made by hypothesis from the data classes: what a field may hold is read from its type."""

from __future__ import annotations

import string
from dataclasses import fields
from typing import Any, get_type_hints

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from klineage.skill.card import (
    Anchor,
    Card,
    Carrier,
    Contract,
    ContractFeature,
    Effect,
    Evidence,
    Precondition,
    Probe,
    Risk,
    Scope,
    Verification,
)

#: Text that means something to YAML or to Markdown, or nothing to the eye.
AWKWARD = (
    "", " ", "---", "...", "- x", "a: b", "a #b", "# Notes", "## After", "```", "````query\n(x) @y", "~~~", "\\# x", "\\\\```",
    "yes", "null", "~", "1", "-0.5e3", "0x1F", "12:30", "2026-11-29", "{a: 1}", "[x, y]", "*all", "&a", "!tag", "%x", "@x", "`x`",
    "'", '"', "it's", "tab\there", "a\nb", "a\r\nb", "\n\nx\n", "trailing ", "\\n", "\u2028", "\x85", "\xa0x", "\ufeff", "\u202e",
    "\x1b[31m", "\x00", "ü😀", "?", ": x", "x:", "|", ">-", "<<", "=", ",", "x, y", "#", "$(reboot)",
)  # fmt: skip

texts = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=24),
    st.lists(st.sampled_from(AWKWARD), min_size=1, max_size=4).map("\n".join),
    st.sampled_from(("rows are contiguous", "K is a multiple of 16: the loop has no tail")),
)
numbers = st.floats(allow_nan=False)
keys = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=4)
maps = st.dictionaries(texts, texts, max_size=3)
names = st.lists(texts, max_size=3).map(tuple)


def _of(hint: Any) -> st.SearchStrategy[Any]:
    if hint is str:
        return texts
    return st.from_type(hint)


def _record(kind: Any, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    parts = {field.name: given.get(field.name, _of(hints[field.name])) for field in fields(kind)}
    return st.builds(kind, **parts)


def _keyed(records: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(records, max_size=3, unique_by=lambda one: one.key).map(tuple)


probes = _record(Probe, settings=maps, evidence=names)
preconditions = _record(Precondition, key=keys, probe=st.none() | probes, evidence=names)
effects = _record(Effect, gain=numbers, low=numbers, high=numbers, evidence=names)
features = st.lists(_record(ContractFeature), max_size=3).map(tuple)
verifications = _record(
    Verification,
    key=keys,
    prior_actions=names,
    held_out=names,
    evidence=names,
    rested_on=maps,
    attempts=st.integers(0, 9),
    gain=st.none() | numbers,
    low=st.none() | numbers,
    high=st.none() | numbers,
)
cards = _record(
    Card,
    id=st.just("c.prefetch-b"),
    surface=st.just("c"),
    scope=_record(Scope, workloads=names, surfaces=names, platforms=names, prior_actions=names),
    contract=st.builds(Contract, features, features, features),
    preconditions=_keyed(preconditions),
    effects=st.lists(effects, max_size=2).map(tuple),
    risks=st.lists(_record(Risk, evidence=names), max_size=2).map(tuple),
    evidence=_keyed(_record(Evidence, key=keys)),
    verification=_keyed(verifications),
    anchor=_record(Anchor),
    carrier=_record(Carrier, settings=maps, evidence=names),
)


def tries(examples: int) -> settings:
    """So many examples, however slow a loaded machine makes them."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, deadline=None, suppress_health_check=slow)
