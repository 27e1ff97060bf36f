"""What paid calls may cost and did cost: reserved before they are made, settled once, never lost."""

from klineage.ledger.book import MARKS, Book, By, Total, marks, total
from klineage.ledger.ledger import Ledger
from klineage.ledger.meter import Estimate, Meter, Reading, estimate
from klineage.ledger.model import Call, Limit, OverBudget, Usage, new_call_id, parse_dollars
from klineage.ledger.prices import Price, Prices, load_prices, own_file
from klineage.ledger.record import Entry, Torn

__all__ = [
    "MARKS",
    "Book",
    "By",
    "Call",
    "Entry",
    "Estimate",
    "Ledger",
    "Limit",
    "Meter",
    "OverBudget",
    "Price",
    "Prices",
    "Reading",
    "Torn",
    "Total",
    "Usage",
    "estimate",
    "load_prices",
    "marks",
    "new_call_id",
    "own_file",
    "parse_dollars",
    "total",
]
