"""What tokens cost: a table that is data with a date, and a person's own table over it."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from klineage.errors import KlineageError
from klineage.ledger.model import Usage

SHIPPED = Path(__file__).with_name("prices.toml")
KINDS = ("input", "cached", "cache_write", "output")
_BANDS = ("above", "long")
_MILLION = -6  # as a power of ten: prices are per million tokens


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens, by kind. A prompt of more than ``above`` tokens is priced as ``long``."""

    input: Decimal
    cached: Decimal
    cache_write: Decimal
    output: Decimal
    above: int = 0
    long: Price | None = None

    def cost(self, usage: Usage) -> Decimal:
        """What ``usage`` costs, exactly."""
        band = self._band(usage.prompt)
        total = sum((getattr(usage, kind) * getattr(band, kind) for kind in KINDS), Decimal(0))
        return total.scaleb(_MILLION)

    def at_most(self, usage: Usage) -> Decimal:
        """What a call of no more than ``usage`` can cost, whatever a cache holds of its prompt."""
        bands = (self,) if self.long is None or usage.prompt <= self.above else (self, self.long)
        return max(
            usage.prompt * max(band.input, band.cached, band.cache_write) + usage.output * band.output
            for band in bands
        ).scaleb(_MILLION)

    def _band(self, prompt: int) -> Price:
        return self.long if self.long is not None and prompt > self.above else self

    def to_json(self) -> dict[str, Any]:
        """Plain data, dollars as text."""
        record: dict[str, Any] = {kind: str(getattr(self, kind)) for kind in KINDS}
        return record if self.long is None else {**record, "above": self.above, "long": self.long.to_json()}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Price:
        """The inverse of ``to_json``. Raises KeyError, TypeError, ValueError or ArithmeticError."""
        long = cls.from_json(record["long"]) if "long" in record else None
        rates = {kind: Decimal(record[kind]) for kind in KINDS}
        return cls(**rates, above=int(record.get("above", 0)), long=long)


@dataclass(frozen=True)
class Prices:
    """A table of prices. ``date``: when it was true; ``source``: where it is from; ``own``: models a person priced."""

    date: date
    source: str
    models: Mapping[str, Price]
    own: frozenset[str] = frozenset()

    def find(self, model: str) -> Price | None:
        """The price of a model, by its name or by its name before a date; None where nobody has said."""
        plain = re.sub(r"[-@]20\d{6}$", "", model)
        return self.models.get(model) or self.models.get(plain)


def own_file() -> Path:
    """Where a person's own prices are: beside ``config.toml``."""
    from platformdirs import user_config_path

    return user_config_path("klineage") / "prices.toml"


def load_prices(own: Path | None = None) -> Prices:
    """The shipped table, with a person's own over it, key by key (``own``: None for ``own_file()``).

    Raises KlineageError, naming the file and the key, for anything that is not understood.
    """
    shipped = _shipped()
    path = own_file() if own is None else own
    try:
        data = _toml(path)
    except FileNotFoundError:
        if own is not None:
            raise KlineageError(f"{path} does not exist; it should hold prices of models") from None
        return shipped
    return _merge(path, data, shipped)


@functools.cache
def _shipped() -> Prices:
    data = _toml(SHIPPED)
    empty = Prices(data["date"], data["source"], {})
    return replace(_merge(SHIPPED, data, empty), own=frozenset())


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as problem:
        raise KlineageError(f"{path}: cannot be read: {problem}") from problem
    except tomllib.TOMLDecodeError as problem:
        raise KlineageError(f"{path}: not valid TOML: {problem}") from problem


def _merge(path: Path, data: Mapping[str, Any], under: Prices) -> Prices:
    _known(path, "", data, ("date", "source", "models"))
    when, source, tables = (
        data.get("date", under.date),
        data.get("source", under.source),
        data.get("models", {}),
    )
    if type(when) is not date:
        raise KlineageError(f"{path}: 'date' is {when!r}; write a day, like 2026-11-29")
    if not isinstance(source, str):
        raise KlineageError(f"{path}: 'source' is {source!r}; write in text where the prices are from")
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise KlineageError(f"{path}: 'models' must hold one table a model, like [models.claude-opus-5]")
    models = dict(under.models)
    for model, table in tables.items():
        models[model] = _price(path, f"models.{model}", table, models.get(model))
    return Prices(when, source, models, under.own | frozenset(tables))


def _price(path: Path, where: str, table: Mapping[str, Any], under: Price | None) -> Price:
    _known(path, where, table, KINDS + _BANDS)
    values: dict[str, Any] = dict(vars(under)) if under else {}
    for kind in KINDS:
        if kind in table:
            values[kind] = _rate(path, f"{where}.{kind}", table[kind])
        elif kind not in values:
            raise KlineageError(f"{path}: [{where}] has no '{kind}'; a model needs {', '.join(KINDS)}")
    if "above" in table:
        values["above"] = _tokens(path, f"{where}.above", table["above"])
    if "long" in table:
        if not isinstance(table["long"], dict):
            raise KlineageError(f"{path}: '{where}.long' must be a table of prices")
        _known(path, f"{where}.long", table["long"], KINDS)
        values["long"] = _price(path, f"{where}.long", table["long"], values.get("long"))
    if bool(values.get("above")) != (values.get("long") is not None):
        raise KlineageError(f"{path}: [{where}] needs both 'above' and 'long', or neither")
    return Price(**values)


def _known(path: Path, where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            place = f" in [{where}]" if where else ""
            raise KlineageError(f"{path}: unknown key '{key}'{place}; known are {', '.join(known)}")


def _rate(path: Path, where: str, value: object) -> Decimal:
    rate = (
        Decimal(value)
        if isinstance(value, (int, Decimal)) and not isinstance(value, bool)
        else Decimal("nan")
    )
    if not rate.is_finite() or rate < 0:
        raise KlineageError(f"{path}: '{where}' is {value!r}; write dollars per million tokens, like 2.50")
    return rate


def _tokens(path: Path, where: str, value: object) -> int:
    if type(value) is not int or value < 1:
        raise KlineageError(f"{path}: '{where}' is {value!r}; write a whole number of tokens")
    return value
