"""Keeping secrets out of what is written down: keys are known by their form, or by this process's environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

MARK = "[secret]"
_NAMES = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_FORMS = re.compile(
    r"(?<![A-Za-z0-9_])sk-[A-Za-z0-9_-]{12,}"  # keys of model APIs, and no "mask-..." of a kernel
    r"|(?<=Bearer )[A-Za-z0-9._~+/=-]{8,}"
    r"|(?<=x-api-key: )\S{8,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|AKIA[0-9A-Z]{16}|xox[abp]-[A-Za-z0-9-]{10,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)
_SHORTEST = 8  # a shorter value is too likely to stand in other text by chance


def redacted(text: str, environment: Mapping[str, str] | None = None) -> str:
    """``text`` with everything that looks like a secret, or is one of the environment's, replaced by a mark."""
    return _FORMS.sub(MARK, without_values(text, os.environ if environment is None else environment))


def without_values(text: str, environment: Mapping[str, str]) -> str:
    """``text`` without the secrets of an environment; whatever only looks like one stays, e.g. in a kernel."""
    for value in secrets_of(environment):
        text = text.replace(value, MARK)
    return text


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """The values of variables that are named like secrets, the longest first."""
    found = {value.strip() for name, value in environment.items() if _NAMES.search(name)}
    return sorted((value for value in found if len(value) >= _SHORTEST), key=len, reverse=True)
