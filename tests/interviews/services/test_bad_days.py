"""A day on which a service does everything wrong: each interview ends answered, or failed with its true cause.

The pauses are short here, and otherwise all is as in any run.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import Job, Model, QuestionFreeText, Results, ScenarioList, Survey
from headrace.interviews import open_chunks
from headrace.limits import BreakerLimits, EndpointLimits, RetryLimits
from headrace.memory.measure.own_tree import tree_bytes
from headrace.models import shared_limiters
from tests.models.behaviours import Call
from tests.models.server import HostileServer

ROWS = 2_000
MOST_MORE_BYTES = 100_000_000  # the server and its answers live in this process too

UNAVAILABLE = [
    "500", "502-html", "503", "reset", "hang-up", "reset-mid-body", "garbage", "truncated-json", "wrong-shape",
    "wrong-shape-list", "html", "deep", "no-choices", "empty-body", "short-length", "bad-gzip", "gzip-bomb", "200MB",
    "200MB-announced", "hang", "drip", "endless",
]  # fmt: skip
CAUSES = dict.fromkeys(UNAVAILABLE, "model unavailable") | {
    "empty": "no answer",
    "refusal": "no answer",
    "filtered": "no answer",
    "cut-off": "invalid answer",
    "context": "model refused the call",
}
FINE = ["large", "chunked", "gzip", "bom", "no-usage", "odd-usage", "two-choices", "long-length"]
ODD_TEXTS = {"surrogates": "a\ufffdb", "bad-utf8": "a\ufffdb", "emoji": "\N{BALLOON}"}
BUSY = ["429", "429-odd", "529", "error-inside"]
# The test is to be short: what is slow or large is met by one row, and what takes its whole time-out only once.
SELDOM = {"200MB", "gzip-bomb", "hang", "drip", "endless", "large", "deep"}
ONCE = {"drip", "endless"}


class BadDay:
    """Chooses what each call meets. The first rows meet the same each time, one kind of trouble each."""

    def __init__(self) -> None:
        self._chance = random.Random(7)
        self._always = dict(enumerate([*CAUSES, "large"]))
        self.last: dict[int, str] = {}  # by row: what its latest call met
        often = {*CAUSES, *FINE, *ODD_TEXTS, *BUSY} - SELDOM
        weights = dict.fromkeys(sorted(often), 0.01) | dict.fromkeys(BUSY, 0.003) | {"ok": 1.0}
        self._names, self._weights = [*weights], [*weights.values()]

    def __call__(self, call: Call) -> str:
        row = row_of(call.prompt)
        call.answer = answer_of(row)
        name = self._always.get(row)
        if name is None or (name in ONCE and row in self.last):
            name = self._chance.choices(self._names, self._weights)[0]
        self.last[row] = name
        return name

    @property
    def stubborn(self) -> int:
        """How many rows are never answered."""
        return len(CAUSES.keys() - ONCE)


def row_of(prompt: str) -> int:
    found = re.match(r"Who is (\d+)\?", prompt)
    assert found is not None
    return int(found[1])


def answer_of(row: int) -> str:
    return f"person {row}"


def behaving(call: Call) -> str:
    call.answer = answer_of(row_of(call.prompt))
    return "ok"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    breaker = BreakerLimits(cool_down_s=0.01, longest_cool_down_s=0.02)
    limits = EndpointLimits(first_pause_s=0.005, longest_pause_s=0.02, breaker=breaker)
    retry = RetryLimits(first_wait_s=0.01, longest_wait_s=0.1)
    monkeypatch.setattr(shared_limiters, "endpoint_limits", lambda _: limits)
    monkeypatch.setattr(open_chunks, "RetryLimits", lambda: retry)


def a_job(server: HostileServer, read_timeout_s: float = 1.0, timeout_s: float = 2.0) -> Job:
    asked = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ scenario.n }}?")])
    model = Model(
        "m", service_name="openai_compatible", base_url=server.url, read_timeout_s=read_timeout_s, timeout_s=timeout_s,
        max_response_bytes=4_000_000,
    )  # fmt: skip
    return asked.by(ScenarioList.from_list("n", range(ROWS)), model)


def answers(results: Results) -> dict[int, str]:
    return dict(results.filter("interview.status == 'done'").select("scenario.n", "answer.q").to_list())


def test_a_bad_day_ends_with_every_interview_answered_or_its_true_cause(server: HostileServer, tmp_path: Path):
    day, before_bytes = BadDay(), tree_bytes()
    server.behave(day)
    results = a_job(server).run(tmp_path / "a.run", concurrency=100)
    stats, failures = results.stats(), list(results.failed())
    assert (stats.interviews, stats.failed) == (ROWS, len(failures))
    assert stats.failed >= day.stubborn
    for failed in failures:
        assert failed.cause == CAUSES[day.last[failed.ordinal]], (failed, day.last[failed.ordinal])
    for row, answer in answers(results).items():
        assert answer == ODD_TEXTS.get(day.last[row], answer_of(row)), (row, day.last[row])
    assert stats.peak_memory is not None
    assert stats.peak_memory - before_bytes <= MOST_MORE_BYTES

    server.behave(behaving)
    mended = a_job(server, 60.0, 120.0).run(tmp_path / "a.run", concurrency=100, retry_failed=True)
    assert (len(mended), mended.stats().failed) == (ROWS, 0)
    assert server.calls == len(failures)
    found = answers(mended)
    assert all(found[failed.ordinal] == answer_of(failed.ordinal) for failed in failures)


def test_a_circuit_that_opened_when_all_in_flight_had_failed_is_still_probed(server: HostileServer, tmp_path: Path):
    server.behave(lambda call: "500" if row_of(call.prompt) < 2 else "ok")
    stats = a_job(server).run(tmp_path / "a.run", concurrency=2, limit=20).stats()
    assert (stats.interviews, stats.failed) == (20, 2)
