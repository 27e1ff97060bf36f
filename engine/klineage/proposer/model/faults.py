"""What an API holds against a call, as a sentence that says what a person can do."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from klineage.proposer.secrets import redacted

WRONG_ADDRESS = "base_url in [proposer], or ANTHROPIC_BASE_URL"
_SAID = 300  # characters of the API's own words in a sentence


def host_of(address: str) -> str:
    """Whom a call to an address goes to, without a name and a password before it."""
    return urlsplit(address).netloc.rpartition("@")[2] or "nobody"


def refusal(status: int, words: str, host: str, model: str) -> str:
    """What the API holds against the request, and what a person can do."""
    if 300 <= status < 400:
        return f"{host} sends calls on to another address ({status}): check {WRONG_ADDRESS}"
    if status == 401:
        return f"{host} does not accept the key (401): check ANTHROPIC_API_KEY, or the profile of the SDK"
    if status == 402:
        return f"{host} wants to be paid first (402): {said(words)}"
    if status == 403:
        return f"this key may not use {model} at {host} (403): {said(words)}"
    if status == 404 and model not in words:
        return (
            f"{host} has no Messages API at this address (404): check {WRONG_ADDRESS}, without /v1 at its end"
        )
    if status == 404:
        return f"{host} knows no model {model!r} (404): set model in [proposer], or ask --proposer model:ID"
    if status == 413:
        return f"the kernel is too long for one request to {host} (413)"
    return f"{host} refused the request ({status}): {said(words) or 'it does not say why'}"


def asked_wait(header: str) -> float | None:
    """Seconds that the API asks to wait, by its header ``retry-after`` (a number or a date); None where it does not say."""
    try:
        wait = float(header)
    except ValueError:
        try:
            wait = parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return None
    return max(wait, 0.0) if wait < 1e6 else None


def said(words: object) -> str:
    """Words of the other side in a sentence of ours: one line of them, without a key that they repeat."""
    return " ".join(redacted(str(words or "")).split())[:_SAID]
