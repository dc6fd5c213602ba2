import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headrace import Model
from headrace.errors import ListError
from headrace.plan.prices import Price, price_of


def test_a_given_price_comes_first_and_cached_tokens_have_their_own():
    price = price_of(Model("gpt-4o", price={"input": 2.0, "output": 10.0, "cached": 0.5}))
    assert price == Price(2.0, 10.0, 0.5)
    assert price.of(1_000_000, 100_000, 400_000) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 1.0)
    assert Price(2.0, 10.0).of(1_000_000, 0, 400_000) == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["test", "local"])
def test_a_model_on_this_machine_is_free(name: str):
    assert price_of(Model(name)) == Price(0.0, 0.0)


def test_a_known_model_s_price_is_looked_up():
    assert price_of(Model("gpt-4o")) == Price(2.5, 10.0, 1.25)


def test_surveys_that_begin_together_look_a_price_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    python, called = tmp_path / "python", tmp_path / "called"
    python.write_text(f'#!/bin/sh\necho >> {called}\nsleep 0.3\necho \'{{"input": 1.0, "output": 2.0}}\'\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(price_of, [Model("asked-together", base_url="http://localhost:1/v1")] * 8))
    assert found == [Price(1.0, 2.0)] * 8
    assert called.read_text() == "\n"


def test_a_model_that_nobody_knows_has_no_price_which_is_not_zero():
    assert price_of(Model("my-own", base_url="http://localhost:1/v1")) is None


@pytest.mark.parametrize("given", [5, {"input": 1}, {"input": "x", "output": 1}, {"input": -1, "output": 1}, {"in": 1}])
def test_a_price_that_is_none_is_refused(given: Any):
    with pytest.raises(ListError, match="price="):
        price_of(Model("m", price=given))


def test_a_price_and_limits_do_not_make_another_model():
    plain, priced = (
        Model("gpt-4o"),
        Model("gpt-4o", price={"input": 1, "output": 1}, requests_per_minute=5, timeout_s=9),
    )
    assert plain.identity_row() == priced.identity_row()
    assert plain.identity_row() != Model("gpt-4o", temperature=0.1).identity_row()
