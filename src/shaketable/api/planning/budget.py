"""The budget of an audit: time, query-document pairs, or money."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from shaketable.core.errors import BadInput, quote_value

BudgetKind: TypeAlias = Literal["auto", "none", "time", "pairs", "money"]
AUTO, NONE = "auto", "none"
DEFAULT_SECONDS = 600.0
"""The time of an audit of a slow ranker for which you set no budget."""
SECONDS_PER_UNIT = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
TIME_PATTERN = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|m|h)", re.ASCII)
PAIRS_PATTERN = re.compile(r"(\d+)(?: pairs)?", re.ASCII)
MONEY_PATTERN = re.compile(r"[$€£] ?(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?) ?(?:[$€£]|[A-Za-z]{3})", re.ASCII)
EXAMPLES = "a time such as 10m, a number of query-document pairs such as 20000, money such as $5, or none"


@dataclass(frozen=True)
class Budget:
    """A budget: its kind, and its amount in seconds, pairs or units of money."""

    kind: BudgetKind
    amount: float = 0.0
    text: str = AUTO


def parse_budget(given: str | int | None, price_per_1k: float | None = None) -> Budget:
    """Parse a budget; a number is a number of pairs, and None is no limit.

    >>> parse_budget("10m"), parse_budget(20_000).kind, parse_budget("$5", price_per_1k=2.0).amount
    (Budget(kind='time', amount=600.0, text='10m'), 'pairs', 5.0)
    """
    text = NONE if given is None else str(given).strip()
    if text in (AUTO, NONE):
        return Budget("auto" if text == AUTO else "none", text=text)
    if time := TIME_PATTERN.fullmatch(text):
        budget = Budget("time", float(time[1]) * SECONDS_PER_UNIT[time[2]], text)
    elif pairs := PAIRS_PATTERN.fullmatch(text):
        budget = Budget("pairs", float(pairs[1]), text)
    elif money := MONEY_PATTERN.fullmatch(text):
        if not price_per_1k:
            raise BadInput(f"a budget in money ({text}) needs the price of 1,000 requests: add --price-per-1k PRICE")
        budget = Budget("money", float(money[1] or money[2]), text)
    else:
        raise BadInput(f"the budget should be {EXAMPLES}, not {quote_value(given)}")
    if not budget.amount:
        raise BadInput(f"the budget {text} is too small for any test; give {EXAMPLES}")
    return budget
