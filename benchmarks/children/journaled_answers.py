"""Times each answer from the model to the disk, one interview at a time: `journaled_answers PATH`.

The questions form a chain, each naming the one before, so that one answer at a time is under way. The model notes when
it gives an answer; `Journal.commit` is wrapped to note when the COMMIT that holds the answer has returned.
"""

import statistics
import sys
import time
from collections.abc import Iterable
from typing import Any

from benchmarks.processes import print_figures
from headrace import Agent, AgentList, Model, QuestionFreeText, Survey
from headrace.store.run_file.rows import RowBatch
from headrace.store.run_file.run_journal import Journal
from headrace.survey.record import AnswerRecord

_QUESTIONS = 10
_INTERVIEWS = 50
_LATENCY_S = 0.002

_answered_s: dict[tuple[int, int], float] = {}  # by (ordinal, question), until its COMMIT
_took_ms: list[float] = []


def answer(request: Any) -> str:
    question = int(request.question_name.removeprefix("q"))
    _answered_s[request.agent["number"], question] = time.perf_counter()
    return "A few words."


def commit_and_note(
    self: Journal, batches: list[RowBatch], records: Iterable[tuple[int, AnswerRecord]], commit: Any = Journal.commit
) -> None:
    records = list(records)
    commit(self, batches, records)
    now_s = time.perf_counter()
    held = [(ordinal, record.question) for ordinal, record in records]
    # A sealed row holds its last answer, and those that no commit had reached before.
    held += [(ordinal, number) for batch in batches for ordinal in batch.ordinals for number in range(_QUESTIONS)]
    _took_ms.extend((now_s - _answered_s.pop(key)) * 1000 for key in held if key in _answered_s)


def main(path: str) -> None:
    chain = ["Begin.", *(f"After {{{{ q{number}.answer }}}}, go on." for number in range(_QUESTIONS - 1))]
    survey = Survey(
        [QuestionFreeText(question_name=f"q{number}", question_text=text) for number, text in enumerate(chain)]
    )
    agents = AgentList(Agent(traits={"number": number}) for number in range(_INTERVIEWS))
    Journal.commit = commit_and_note
    survey.by(agents).by(Model("test", canned_response=answer, latency_s=_LATENCY_S)).run(path, concurrency=1)
    assert len(_took_ms) == _QUESTIONS * _INTERVIEWS
    print_figures(p50_ms=statistics.median(_took_ms), p95_ms=statistics.quantiles(_took_ms, n=20)[-1])


if __name__ == "__main__":
    main(sys.argv[1])
