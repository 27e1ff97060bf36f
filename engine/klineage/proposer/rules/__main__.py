"""``python -m klineage.proposer.rules > docs/rules.md``: every rule, as a page."""

from __future__ import annotations

from klineage.kernel import Surface
from klineage.proposer.rules import RULES, Rule

_NAMES: dict[Surface, str] = {"triton": "Triton", "c": "C", "cuda": "CUDA"}


def page() -> str:
    """docs/rules.md, whole."""
    total = sum(map(len, RULES.values()))
    lines = [
        "# The rules",
        "",
        f"The {total} structural rules, in the order in which they are proposed. Written by",
        "`python -m klineage.proposer.rules > docs/rules.md`; what they share is in [proposers.md](proposers.md#rules).",
        "*After* names the mechanisms that stand on this one: while they are there, the rule waits.",
    ]
    for surface, name in _NAMES.items():
        lines += [
            "",
            f"## {name}",
            "",
            "| rule | takes out | action | after | holds before it is put in |",
            "|---|---|---|---|---|",
        ]
        lines += [_row(rule) for rule in RULES[surface]]
    return "\n".join(lines) + "\n"


def _row(rule: Rule) -> str:
    after = ", ".join(f"`{name}`" for name in rule.after)
    preconditions = "<br>".join(
        f"*{kind}:*{rest}" for kind, _, rest in (p.partition(":") for p in rule.preconditions)
    )
    cells = (f"`{rule.name}`", f"{rule.title}. {rule.rationale}", f"`{rule.action}`", after, preconditions)
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


if __name__ == "__main__":
    print(page(), end="")
