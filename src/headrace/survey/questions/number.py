"""Numbers: one within bounds, a budget shared among options, quantities at several prices. Whole numbers stay whole.

Does not cover: finding the number in a sentence (survey.repair.number_texts).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import CommentedQuestion, Schema, as_example
from headrace.survey.questions.json_answers import (
    JsonQuestion,
    as_bound,
    as_list,
    by_name,
    check_distinct,
    check_order,
)
from headrace.survey.repair.json_texts import Found, json_in
from headrace.survey.repair.number_texts import number_in

_WHOLE = re.compile(r"[-+]?\d{1,4000}")
_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
_NUMBERS = re.compile(r"[-+\d.eE\s,]{1,100000}")


@dataclass(frozen=True, kw_only=True)
class QuestionNumerical(CommentedQuestion):
    """One number. `permissive=True` tells the model its bounds and accepts others too."""

    kind = "numerical"
    example_settings = as_example(
        question_name="hours_asleep",
        question_text="How many hours did you sleep last night?",
        min_value=0,
        max_value=24,
    )

    min_value: float | str | None = None
    max_value: float | str | None = None
    permissive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in ("min_value", "max_value"):
            bound = as_bound(self.question_name, setting, getattr(self, setting))
            object.__setattr__(self, setting, bound)
        check_order(self.question_name, "min_value", self.min_value, "max_value", self.max_value)

    def instructions(self) -> str:
        match (self.min_value, self.max_value):
            case (None, None):
                bounds = ""
            case (low, None):
                bounds = f" of at least {low}"
            case (None, high):
                bounds = f" of at most {high}"
            case (low, high):
                bounds = f" between {low} and {high}"
        alone = "" if self.has_comment else " and nothing else"
        return f"Answer with one number{bounds}{alone}."

    def schema(self) -> Schema:
        bounds = {} if self.permissive else {"minimum": self.min_value, "maximum": self.max_value}
        return {"type": "number", **{name: bound for name, bound in bounds.items() if bound is not None}}

    def accept(self, given: Any) -> int | float:
        number = as_number(given)
        if self.permissive:
            return number
        if self.min_value is not None and number < cast(float, self.min_value):
            raise InvalidAnswer(f"{number} is below the least value {self.min_value}")
        if self.max_value is not None and number > cast(float, self.max_value):
            raise InvalidAnswer(f"{number} is above the greatest value {self.max_value}")
        return number


@dataclass(frozen=True, kw_only=True)
class AmountsQuestion(JsonQuestion):
    """One number of 0 or more for each of several things. The answer is a list: `[{"Pizza": 25.0}, {"Cake": 75.0}]`."""

    shapes = (dict, list)

    @property
    def things(self) -> Sequence[str]:
        """What each number is for, as the prompt names it; known once the question is filled."""
        raise NotImplementedError

    def schema(self) -> Schema:
        amounts = {thing: {"type": "number", "minimum": 0} for thing in self.things}
        return {"type": "object", "properties": amounts, "required": list(amounts), "additionalProperties": False}

    def find(self, text: str) -> Found | None:
        if _NUMBERS.fullmatch(text):
            return json_in(f"[{text.strip().strip(',')}]", list)
        return super().find(text)

    def accept(self, given: Any) -> list[dict[str, float]]:
        held = by_name(self._named(self.shaped(given)), self.things, what="option")
        amounts = {thing: float(as_number(amount)) for thing, amount in held.items()}
        for thing, amount in amounts.items():
            if amount < 0:
                raise InvalidAnswer(f"{amount:g} for {thing!r} is below 0")
        return [{thing: amount} for thing, amount in self.checked(amounts).items()]

    def checked(self, amounts: dict[str, float]) -> dict[str, float]:
        """The amounts, or InvalidAnswer where they do not fit each other."""
        return amounts

    def _named(self, given: Any) -> Mapping[str, Any]:
        """The answer with its names: it may come as numbers in order, or as the list that an answer is."""
        if isinstance(given, dict):
            return cast("dict[str, Any]", given)
        items = cast("list[Any]", given)
        if items and all(isinstance(item, dict) and len(cast("dict[str, Any]", item)) == 1 for item in items):
            pairs = [next(iter(cast("dict[str, Any]", item).items())) for item in items]
            if len(dict(pairs)) < len(pairs):
                raise InvalidAnswer("the answer names an option twice")
            return dict(pairs)
        if len(items) != len(self.things):
            raise InvalidAnswer(f"the answer has {len(items)} number(s), {len(self.things)} are needed")
        return dict(zip(self.things, items, strict=True))


@dataclass(frozen=True, kw_only=True)
class QuestionBudget(AmountsQuestion):
    """`budget_sum` shared among the options. `permissive=True` lets some of it be left over, unless `remainder_option`
    names the option that gets what is left.
    """

    kind = "budget"
    example_settings = as_example(
        question_name="free_evening",
        question_text="You have 180 minutes this evening. How do you spend them?",
        question_options=["Reading", "Sport", "Friends"],
        budget_sum=180,
    )

    question_options: Sequence[Any] | str
    budget_sum: float | str
    permissive: bool = False
    remainder_option: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        options = as_list(self.question_name, "question_options", self.question_options)
        object.__setattr__(self, "question_options", options)
        budget = as_bound(self.question_name, "budget_sum", self.budget_sum)
        if budget is None or (not isinstance(budget, str) and budget < 0):
            raise SurveyError(f"Question {self.question_name!r} has budget_sum {budget}.", fix="Give 0 or more.")
        object.__setattr__(self, "budget_sum", budget)
        if isinstance(options, str):
            return
        check_distinct(self.question_name, "question_options", options)
        if self.remainder_option is not None and self.remainder_option not in options:
            raise SurveyError(
                f"Question {self.question_name!r} has remainder_option {self.remainder_option!r}.",
                fix=f"Give one of {list(options)}.",
            )

    @property
    def things(self) -> Sequence[str]:
        return [str(option).strip() for option in self.question_options]

    def listing(self) -> str:
        return "Options:\n" + "\n".join(f"- {option}" for option in self.things)

    def instructions(self) -> str:
        return (
            f"Share {self.budget_sum} among the options. The numbers must add up to {self.budget_sum}; "
            "an option may get 0.\nAnswer with a JSON object like this one, which gives each option the same: "
            f"{{{self._equal_shares()}}}"
        )

    def _equal_shares(self) -> str:
        options, budget = self.things, float(self.budget_sum)
        if budget.is_integer():
            share, rest = divmod(int(budget), len(options))
            shares: list[float] = [share + (place < rest) for place in range(len(options))]
        else:
            shares = [budget / len(options)] * len(options)
        return ", ".join(f'"{option}": {each:g}' for option, each in zip(options, shares, strict=True))

    def checked(self, amounts: dict[str, float]) -> dict[str, float]:
        budget, total = float(self.budget_sum), math.fsum(amounts.values())
        if math.isclose(total, budget, rel_tol=1e-6, abs_tol=1e-6):
            return amounts
        if total < budget and self.remainder_option is not None:
            rest = str(self.remainder_option).strip()
            return {**amounts, rest: amounts[rest] + budget - total}
        if total > budget or not self.permissive:
            raise InvalidAnswer(f"the numbers add up to {total:g}, they must add up to {budget:g}")
        return amounts


@dataclass(frozen=True, kw_only=True)
class QuestionDemand(AmountsQuestion):
    """How many at each price."""

    kind = "demand"
    example_settings = as_example(
        question_name="bus_tickets",
        question_text="How many bus tickets would you buy in a month?",
        prices=[1.5, 2.5, 4],
    )

    prices: Sequence[Any] | str

    def __post_init__(self) -> None:
        super().__post_init__()
        prices = as_list(self.question_name, "prices", self.prices)
        if not isinstance(prices, str):
            prices = tuple(as_bound(self.question_name, "prices", price) for price in prices)
            check_distinct(self.question_name, "prices", prices)
            if any(price is None or (isinstance(price, (int, float)) and price < 0) for price in prices):
                raise SurveyError(f"Question {self.question_name!r} has a price below 0.", fix="Give 0 or more.")
        object.__setattr__(self, "prices", prices)

    @property
    def things(self) -> Sequence[str]:
        shown = [f"${float(price):.2f}" for price in self.prices]
        return shown if len(set(shown)) == len(shown) else [f"${price}" for price in self.prices]

    def listing(self) -> str:
        return "Prices:\n" + "\n".join(f"- {price}" for price in self.things)

    def instructions(self) -> str:
        shape = ", ".join(f'"{price}": ...' for price in self.things)
        return (
            "Say how many you would buy at each price, 0 or more.\n"
            f"Answer with a JSON object like this, with numbers: {{{shape}}}"
        )


def as_number(given: Any) -> int | float:
    """A finite number from a JSON number, or from text that holds one number and no other."""
    if isinstance(given, str):
        given = _read(given.strip())
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise InvalidAnswer(f"{str(given)[:200]!r} is not a number")
    if isinstance(given, float) and not math.isfinite(given):
        raise InvalidAnswer(f"{given} is not a finite number")
    return given


def _read(text: str) -> int | float | str:
    if text.isdecimal() and len(text) < 19:
        return int(text)
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    if _WHOLE.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    found = number_in(text)
    return text if found is None else found
