"""The table of prices: what ships, what a person may say over it, and what a slip is called."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import get_args

import pytest
from klineage.errors import KlineageError
from klineage.ledger import Prices, Usage, load_prices


def own(tmp_path: Path, text: str) -> Prices:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    return load_prices(path)


@pytest.fixture
def shipped(tmp_path: Path) -> Prices:
    return own(tmp_path, "")


def test_the_shipped_table_is_dated_and_sourced(shipped: Prices) -> None:
    assert shipped.date.year == 2026
    assert shipped.source.startswith("https://")
    assert shipped.own == frozenset()
    for model, price in shipped.models.items():
        assert 0 < price.cached < price.input < price.cache_write < price.output, model


def test_it_knows_models_of_the_sdk_by_their_own_names(shipped: Prices) -> None:
    """Some that the SDK names are not in the table: they must be priced by the user, and none is misspelt here."""
    from anthropic.types import Model

    named = set(get_args(get_args(Model)[0]))
    assert set(shipped.models) <= named
    assert {"claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-2"} <= set(
        shipped.models
    )


def test_a_dated_name_has_the_price_of_the_plain_one(shipped: Prices) -> None:
    assert shipped.find("claude-haiku-4-5-20251001") == shipped.models["claude-haiku-4-5"]
    assert shipped.find("claude-haiku-4-5@20251001") == shipped.models["claude-haiku-4-5"]
    assert shipped.find("claude-haiku-4") is None
    assert shipped.find("claude-haiku-4-5-preview") is None


def test_a_long_prompt_is_priced_as_such(shipped: Prices) -> None:
    price = shipped.models["claude-haiku-5-5"]
    assert price.cost(Usage(input=100_000)) == Decimal("0.01")
    assert price.cost(Usage(input=50_000, cached=50_001)) == Decimal("0.02750005")


def test_a_persons_table_goes_over_it_key_by_key(tmp_path: Path) -> None:
    prices = own(
        tmp_path,
        "date = 2026-12-01\n[models.claude-opus-5-5]\noutput = 15.5\n"
        '[models."local/qwen"]\ninput = 0\ncached = 0\ncache_write = 0\noutput = 0\n',
    )
    changed, local = prices.find("claude-opus-5-5"), prices.find("local/qwen")
    assert changed is not None
    assert (changed.input, changed.output) == (Decimal(4), Decimal("15.5"))
    assert local is not None
    assert local.cost(Usage(1_000_000, 1, 1, 1_000_000)) == 0
    assert prices.own == {"claude-opus-5-5", "local/qwen"}
    assert prices.date.month == 12
    assert prices.find("claude-opus-5") == load_prices(tmp_path / "prices.toml").find("claude-opus-5")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[models.x]\ninptu = 1", r"unknown key 'inptu' in \[models\.x\]; known are input, cached"),
        ("[model.x]\ninput = 1", "unknown key 'model'; known are date, source, models"),
        ("[models.x]\ninput = 1\noutput = 2\ncached = 1", r"\[models\.x\] has no 'cache_write'"),
        ("[models.claude-opus-5]\noutput = '25'", r"'models\.claude-opus-5\.output' is '25'; write dollars"),
        ("[models.claude-opus-5]\noutput = -1", "output' is -1"),
        ("[models.claude-opus-5]\noutput = nan", "output' is Decimal"),
        ("[models.claude-opus-5]\noutput = true", "output' is True"),
        ("[models.claude-opus-5]\nabove = 5", "needs both 'above' and 'long'"),
        ("[models.claude-haiku-5-5]\nlong = { inptu = 1 }", r"unknown key 'inptu' in \[models\.claude-haiku-5-5\.long\]"),
        ("[models.claude-haiku-5-5]\nabove = 0", "above' is 0"),
        ("[models]\nclaude-opus-5 = 5", "one table a model"),
        ("date = '2026-11-29'", "'date' is '2026-11-29'"),
        ("source = 3", "'source' is 3"),
        ("[models.x", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_slip_is_named_by_file_and_key(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(KlineageError, match=said) as caught:
        own(tmp_path, text)
    assert str(tmp_path / "prices.toml") in str(caught.value)


def test_a_file_that_is_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(KlineageError, match="does not exist"):
        load_prices(tmp_path / "none.toml")
