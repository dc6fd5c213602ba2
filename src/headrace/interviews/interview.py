"""Conducts one interview: puts a survey's questions to one agent, about one scenario, through one model.

Covers: the order of questions, what overlaps, reading answers, and turning what goes wrong into data.
Does not cover: which interviews run and where (interviews.inline), or how a call is made (providers).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, TypeVarTuple

from headrace.display import counted
from headrace.errors import FileUnusable, InvalidAnswer, ModelUnusable, ProviderRefused, ProviderUnavailable
from headrace.interviews.contract import Interview
from headrace.limits import RetryLimits
from headrace.models.calls import ModelCalls
from headrace.models.endpoint.retry import wait_before_retry_s
from headrace.models.limiter import CallNotMade
from headrace.models.provider import Finish, Reply, Request
from headrace.priority import Priority
from headrace.store.run_file.rows import ANSWER_COLUMNS, Row, Status
from headrace.survey.asked_question import AskedQuestion, asked_questions
from headrace.survey.files.file_text import NOT_WAITING, TextNeeded
from headrace.survey.files.marks import PromptFiles
from headrace.survey.flow.route import Jumps, Route
from headrace.survey.names import Context, named_agent
from headrace.survey.people.agent_functions import AgentFunctions
from headrace.survey.questions import Question
from headrace.survey.record import (
    AnswerRecord,
    AnswerState,
    Cause,
    Detail,
    DetailShape,
    Failure,
    Usage,
    encode_detail,
    without_answer,
    without_texts,
)
from headrace.survey.replies import NoAnswer
from headrace.survey.survey import Survey
from headrace.survey.templates import CannotRender
from headrace.survey.values import Fields, SqlValue, encode_value, from_sql, repair_text, to_sql

_LONGEST_MESSAGE = 2_000
_LONGEST_QUOTE = 200
_STOP = Finish.STOP
_Given = TypeVarTuple("_Given")
_Made = TypeVar("_Made")
_MOST_AT_ONCE = 20  # questions of one interview
_MOST_TEXTS = 100  # of files, in one prompt
# Looking a member up in its enum costs more than using it.
_ANSWERED = AnswerState.ANSWERED
_WHOLE = DetailShape.WHOLE


class InterviewInProgress:
    """One interview in progress: what it was given, and its records so far. It holds one permit of the window."""

    __slots__ = (
        "context",
        "functions",
        "given",
        "is_stopping",
        "jumps",
        "records",
        "resume_after_s",
        "started_at",
        "started_s",
        "system",
        "unasked",
        "unfinished",
    )

    def __init__(
        self,
        given: Interview,
        agent: Fields,
        scenario: Fields,
        system: str,
        questions: int,
        is_stopping: Callable[[], bool],
    ) -> None:
        self.given = given
        self.is_stopping = is_stopping
        self.system = system
        self.functions: AgentFunctions | None = None
        self.context: Context = {"agent": agent, "scenario": scenario}
        self.records: list[AnswerRecord | None] = [None] * questions
        self.jumps: Jumps = {}
        self.unasked = questions
        self.unfinished: dict[int, tuple[AnswerRecord, int]] | None = None  # with how many calls failed
        self.started_at = time.time()
        self.started_s = time.monotonic()
        self.resume_after_s: float | None = None


class Interviewer:
    """Conducts interviews of one survey; compiled once and shared by all of them."""

    def __init__(
        self,
        survey: Survey,
        models: Sequence[ModelCalls],
        retry: RetryLimits,
        question_models: Mapping[int, int] | None = None,
        details: DetailShape = DetailShape.WHOLE,
        priority: Priority = Priority.NORMAL,
    ) -> None:
        self._details = details
        self._priority = priority
        self._asked = asked_questions(survey)
        self.wording = survey.wording
        self._resolved = survey.resolved
        self._route = Route(survey)
        self._steps = self._route.steps
        self._is_always_asked = [s.is_plain and not a.is_derived for s, a in zip(self._steps, self._asked, strict=True)]
        needed = self._route.needed()
        self._is_needed = [position in needed for position in range(len(survey))]
        self._models = models
        own = question_models or {}
        self._own_models = [models[own[position]] if position in own else None for position in range(len(survey))]
        self._never_waits = [
            all(each.is_instant for each in (model, *self._own_models) if each is not None) for model in models
        ]
        self._retry = retry
        self._bools = [question.holds_bools for question in survey.questions]
        # A chain has one question to ask at any time: nothing to overlap.
        follows = [step.position - 1 in step.waits for step in self._steps[1:]]
        self._is_chain = all(asked.is_derived or after for asked, after in zip(self._asked[1:], follows, strict=True))

    @property
    def is_instant(self) -> bool:
        return all(model.is_instant for model in self._models)

    def never_waits(self, model: int) -> bool:
        """Whether interviews with this model never wait, for a question's own model neither."""
        return self._never_waits[model]

    def begin(
        self, given: Interview, agent: Fields, scenario: Fields, system: str, is_stopping: Callable[[], bool]
    ) -> InterviewInProgress:
        agent = named_agent(agent, given.agent, self._resolved)
        interview = InterviewInProgress(given, agent, scenario, system, len(self._asked), is_stopping)
        for record in given.kept:
            self._keep(interview, record)
        return interview

    async def conduct(
        self,
        interview: InterviewInProgress,
        on_answer: Callable[[int, AnswerRecord], None] | None,
        stopped: Callable[[], bool],
    ) -> Row | None:
        """Ask what is not answered yet. None where it must go on later: `resume_after_s` tells when, or never."""
        interview.resume_after_s = None
        # An agent's functions may give it other traits for each question, so one is asked at a time.
        if self._is_chain or self._never_waits[interview.given.model] or interview.functions is not None:
            await self._ask_in_turn(interview, on_answer, stopped)
        else:
            await self._ask_overlapping(interview, on_answer, stopped)
        return self._as_row(interview) if interview.unasked == 0 else None

    def failed(self, interview: InterviewInProgress, cause: Cause, message: str) -> Row:
        """Make the row of an interview that cannot go on, for a reason outside its questions."""
        for position, record in enumerate(interview.records):
            if record is None:
                failure = Failure(position, cause, _storable(message))
                self._keep(interview, AnswerRecord(position, AnswerState.FAILED, failure=failure))
        return self._as_row(interview)

    async def _ask_in_turn(
        self,
        interview: InterviewInProgress,
        on_answer: Callable[[int, AnswerRecord], None] | None,
        stopped: Callable[[], bool],
    ) -> None:
        for asked in self._asked:
            if interview.records[asked.position] is not None:
                continue
            if not await self._ask(interview, asked):
                return
            if on_answer is None:
                continue  # a model that never waits: nothing can look at it, or stop it, in between
            record = interview.records[asked.position]
            if record is not None and record.attempts:
                on_answer(interview.given.ordinal, record)
            if stopped():
                return

    async def _ask_overlapping(
        self,
        interview: InterviewInProgress,
        on_answer: Callable[[int, AnswerRecord], None] | None,
        stopped: Callable[[], bool],
    ) -> None:
        running: dict[asyncio.Task[bool], AskedQuestion] = {}
        waiting = [asked for asked in self._asked if interview.records[asked.position] is None]
        try:
            while True:
                if not stopped():
                    ready = [asked for asked in waiting if self._is_ready(interview, asked)]
                    ready = ready[: _MOST_AT_ONCE - len(running)]
                    waiting = [asked for asked in waiting if asked not in ready]
                    running |= {asyncio.create_task(self._ask(interview, asked)): asked for asked in ready}
                if not running:
                    return
                ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    asked = running.pop(task)
                    task.result()
                    record = interview.records[asked.position]
                    if on_answer is not None and record is not None and record.attempts:
                        on_answer(interview.given.ordinal, record)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _is_ready(self, interview: InterviewInProgress, asked: AskedQuestion) -> bool:
        return all(interview.records[position] is not None for position in self._steps[asked.position].waits)

    async def _ask(self, interview: InterviewInProgress, asked: AskedQuestion) -> bool:
        """Put one question. False where its model is to be tried again later."""
        record, failed_calls = AnswerRecord(asked.position, _ANSWERED), 0
        if interview.unfinished is not None and asked.position in interview.unfinished:
            record, failed_calls = interview.unfinished.pop(asked.position)
        started_s = time.monotonic()
        record.started_ms = int((started_s - interview.started_s) * 1000)
        if interview.functions is not None:
            interview.context["agent"] = interview.functions.fields  # as rules know the agent
        try:
            if not self._is_always_asked[asked.position] and await _with_texts(
                self._is_settled, interview, asked, record
            ):
                return self._keep(interview, record)
            if interview.functions is not None and self._is_answered(interview.functions, interview, asked, record):
                return self._keep(interview, record)
            written = await _with_texts(asked.write, interview.context, interview.given.ordinal)
            record.prompt, question, files = written
            reason = await self._call(interview, asked, record, question, files)
            if reason is not None:
                await self._ask_again(interview, asked, record, question, files, reason)
        except CannotRender as error:
            _fail(record, Cause.DATA, error.message)
        except (CallNotMade, ModelUnusable):
            # No fault of this interview: it stays as it is for a later run.
            return self._leave(interview, record, failed_calls)
        except FileUnusable as error:
            _fail(record, Cause.FILE, error.message)
        except ProviderRefused as error:
            _fail(record, Cause.REFUSED, error.message)
        except ProviderUnavailable as error:
            if self._try_later(interview, record, failed_calls + 1, error):
                return False
            _fail(record, Cause.UNAVAILABLE, error.message)
        record.took_ms = int((time.monotonic() - started_s) * 1000)
        return self._keep(interview, record)

    async def _call(
        self,
        interview: InterviewInProgress,
        asked: AskedQuestion,
        record: AnswerRecord,
        question: Question,
        files: PromptFiles,
    ) -> InvalidAnswer | NoAnswer | None:
        """Call the model once. None where its answer was accepted, else why not."""
        given, context = interview.given, interview.context
        record.attempts += 1
        request = Request(
            asked.name, record.system or interview.system, record.prompt, asked.schema(question),
            context["agent"], context["scenario"], given.iteration, record.attempts, asked.has_comment,
            self._priority, files, given.ordinal,
        )  # fmt: skip
        model = self._own_models[asked.position] or self._models[given.model]
        try:
            reply = await model.ask(request, record, interview.is_stopping)
        except FileUnusable:
            record.attempts -= 1  # nothing was sent whole, so there is nothing to pay
            raise
        except (ProviderRefused, ProviderUnavailable, MemoryError):  # the call was made
            model.charged(given.ordinal, record)
            raise
        record.raw = reply.raw
        record.repaired = reply.repaired
        record.input_tokens += reply.input_tokens
        record.output_tokens += reply.output_tokens
        model.charged(given.ordinal, record)
        is_whole = reply.finish is _STOP
        # A cut-off comment does no harm; a cut-off answer is none.
        begun = None if is_whole else _read_cut(question, reply)
        if begun is None and not is_whole:
            return _cut_short(reply)
        try:
            answer, record.comment = begun or question.read(reply.text)
            record.value = to_sql(question.accept(answer), as_bool=self._bools[asked.position])
        except (InvalidAnswer, NoAnswer) as error:
            return error
        if is_whole:
            model.accepted(reply)
        return None

    async def _ask_again(
        self,
        interview: InterviewInProgress,
        asked: AskedQuestion,
        record: AnswerRecord,
        question: Question,
        files: PromptFiles,
        reason: InvalidAnswer | NoAnswer,
    ) -> None:
        """Tell the model why its answer was not accepted, a few times, then record that as the failure."""
        prompt = record.prompt
        for _ in range(self._retry.answer_attempts - 1):
            record.prompt = f"{prompt}\n\nYour last answer was not accepted: {reason.message}."
            again = await self._call(interview, asked, record, question, files)
            if again is None:
                return
            reason = again
        _fail(record, Cause.MISSING if isinstance(reason, NoAnswer) else Cause.INVALID, reason.message)

    def _is_settled(self, interview: InterviewInProgress, asked: AskedQuestion, record: AnswerRecord) -> bool:
        """Whether a question need not be put to the model: it is skipped, or its answer follows from another."""
        step = self._steps[asked.position]
        record.state = self._route.decide(step, interview.records, interview.jumps, interview.context)
        if record.state is not _ANSWERED:
            return True
        if asked.is_derived:
            answer = asked.derive(interview.context, interview.given.ordinal)
            record.value = to_sql(answer, as_bool=self._bools[asked.position])
        return asked.is_derived

    def _is_answered(
        self, functions: AgentFunctions, interview: InterviewInProgress, asked: AskedQuestion, record: AnswerRecord
    ) -> bool:
        """Whether the agent's own function answers; else the agent gets the traits it has for this question."""
        if functions.answers:
            question = asked.filled(interview.context, interview.given.ordinal)
            try:
                answer = functions.answer(question, interview.context["scenario"])
                record.value = to_sql(answer, as_bool=self._bools[asked.position])
            except InvalidAnswer as error:
                _fail(record, Cause.INVALID, error.message)
            return True
        # Its text is not filled yet: it may name the traits that are chosen here.
        agent, record.system = functions.described_for(asked.question)
        interview.context["agent"] = named_agent(agent, interview.given.agent, self._resolved)
        return False

    def _try_later(
        self, interview: InterviewInProgress, record: AnswerRecord, failed_calls: int, error: ProviderUnavailable
    ) -> bool:
        wait_s = wait_before_retry_s(failed_calls, error.retry_after_s, self._retry, random.random())
        if wait_s is None:
            return False
        interview.resume_after_s = max(wait_s, interview.resume_after_s or 0.0)
        self._leave(interview, record, failed_calls)
        return True

    def _leave(self, interview: InterviewInProgress, record: AnswerRecord, failed_calls: int) -> bool:
        """Keep a question that has no answer yet as it is: the calls made so far were made, and count."""
        interview.unfinished = interview.unfinished or {}
        interview.unfinished[record.question] = record, failed_calls
        return False

    def _keep(self, interview: InterviewInProgress, record: AnswerRecord) -> bool:
        position = record.question
        interview.unasked -= interview.records[position] is None
        interview.records[position] = record
        if self._is_needed[position]:
            answer = from_sql(record.value, as_bool=self._bools[position])
            self._asked[position].put_answer(interview.context, record, answer)
        return True

    def _as_row(self, interview: InterviewInProgress) -> Row:
        given = interview.given
        records = [record for record in interview.records if record is not None]
        failures: list[Failure] = []
        usage = given.uncounted or Usage()
        for record in records:
            if record.failure is not None:
                failures.append(record.failure)
            usage.add(record)
        for record in given.kept:  # counted before, or among the uncounted
            usage.add(record, -1)
        answers, more = self._columns(records)
        detail = self._detail(interview, records, is_failed=bool(failures))
        return Row(
            given.ordinal, given.iteration, given.agent, given.scenario, given.model,
            Status.FAILED if failures else Status.DONE, answers, more, detail, failures, usage,
        )  # fmt: skip

    def _detail(
        self, interview: InterviewInProgress, records: list[AnswerRecord], *, is_failed: bool
    ) -> bytes | bytearray:
        if self._details is _WHOLE:
            return encode_detail(Detail(interview.system, interview.started_at, records))
        if self._details is DetailShape.OF_FAILED and not is_failed:
            return b""
        slim = without_texts if is_failed else without_answer  # a retry needs the answers of one that failed
        return encode_detail(Detail("", interview.started_at, [slim(record) for record in records]))

    def _columns(self, records: list[AnswerRecord]) -> tuple[list[SqlValue], str | None]:
        """The answers that have a column each, and the rest as one JSON list."""
        answers: list[SqlValue] = [record.value for record in records]
        if len(answers) <= ANSWER_COLUMNS:
            return answers, None
        rest = zip(answers[ANSWER_COLUMNS:], self._bools[ANSWER_COLUMNS:], strict=True)
        return answers[:ANSWER_COLUMNS], encode_value([from_sql(value, as_bool=held) for value, held in rest]).decode()


def _read_cut(question: Question, reply: Reply) -> tuple[Any, str | None] | None:
    return question.read_cut(reply.text) if reply.finish is Finish.LENGTH else None


def _cut_short(reply: Reply) -> InvalidAnswer | NoAnswer:
    """Why a reply that did not end by itself is no answer, whatever it says."""
    if reply.finish is Finish.REFUSED:
        return NoAnswer(f"the model refused to answer: {reply.text[:_LONGEST_QUOTE]}")
    return InvalidAnswer(f"the answer was cut off after {counted(reply.output_tokens, 'token')}; be brief")


def _fail(record: AnswerRecord, cause: Cause, message: str) -> None:
    record.state = AnswerState.FAILED
    record.value = None
    record.failure = Failure(record.question, cause, _storable(message))


def _storable(message: str) -> str:
    """A message that can be stored, whatever it quotes."""
    return repair_text(message[:_LONGEST_MESSAGE])[0]


async def _with_texts(make: Callable[[*_Given], _Made], *given: *_Given) -> _Made:
    """What a function makes, such as a prompt. Texts of files that it needs are read in a thread, and it is called
    again.
    """
    for _ in range(_MOST_TEXTS):
        NOT_WAITING.is_on = True
        try:
            return make(*given)
        except TextNeeded as needed:
            load = needed.with_traceback(None).load  # else a cycle would keep this interview until it is collected
        finally:
            NOT_WAITING.is_on = False
        await asyncio.to_thread(load)
    raise CannotRender(f"it needs the texts of more than {_MOST_TEXTS} files, or longer ones than can be held")
