"""Prices of a model's tokens, given with the model or looked up, in US dollars per million tokens.

A look-up loads genai-prices (the extra `prices`, 41 MB) in a process of its own, once per model, before the run;
one process at a time.
Does not cover: what calls took (survey.record), or stopping at a budget (interviews.run).
"""

from __future__ import annotations

import sys
import threading
from functools import lru_cache
from typing import Any

import msgspec

from headrace.errors import ListError
from headrace.survey.model import Model

_MILLION = 1_000_000
_FREE = frozenset({"local", "test"})
_LOOK_UP_WITHIN_S = 30.0
_one_at_a_time = threading.Lock()
# Some prices rise with the length of a prompt: a short one has the usual price.
_PROGRAM = """
import sys
from genai_prices import Usage, calc_price
def of(**tokens):
    priced = calc_price(Usage(**tokens), model_ref=sys.argv[1], provider_id=sys.argv[2] or None)
    return float(priced.total_price) * 1000
read = of(input_tokens=1000)
print('{"input": %r, "output": %r, "cached": %r}' % (
    read, of(output_tokens=1000), of(input_tokens=1000, cache_read_tokens=1000)))
"""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a million tokens; `cached` are input tokens that the service had cached, by default at the input's price."""

    input: float
    output: float
    cached: float | None = None

    def of(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        cached = self.input if self.cached is None else self.cached
        read = (input_tokens - cached_tokens) * self.input + cached_tokens * cached
        return (read + output_tokens * self.output) / _MILLION


def price_of(model: Model) -> Price | None:
    """The model's price; None where it is unknown, which is not the same as free."""
    given = model.parameters.get("price")
    if given is not None:
        return _given(model.name, given)
    if model.service_name in _FREE:
        return Price(0.0, 0.0)
    with _one_at_a_time:  # surveys that begin together ask for the same model, and each process takes 41 MB
        return _looked_up(model.name, model.service_name)


def can_look_up() -> bool:
    """Whether the prices of well-known models are installed."""
    from importlib.util import find_spec

    return find_spec("genai_prices") is not None


def _given(name: str, given: Any) -> Price:
    try:
        price = msgspec.convert(given, Price)
    except msgspec.ValidationError as error:
        raise ListError(
            f"Model {name!r}: price={given!r}: {error}.",
            fix='Give US dollars per million tokens, like price={"input": 2.5, "output": 10}.',
        ) from None
    if any(not 0 <= each < 1e6 for each in (price.input, price.output, price.cached or 0.0)):
        raise ListError(f"Model {name!r}: price={given!r} is below zero or out of all reason.")
    return price


@lru_cache(maxsize=256)
def _looked_up(name: str, service: str) -> Price | None:
    import subprocess  # 5 ms, for the few who need it

    if not can_look_up():
        return None
    command = [sys.executable, "-c", _PROGRAM, name, "" if service == "openai_compatible" else service]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=_LOOK_UP_WITHIN_S, check=False)
        return msgspec.json.decode(ended.stdout, type=Price) if ended.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError):
        return None  # a run does not fail for want of a price
