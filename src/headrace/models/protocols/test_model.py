"""The test model: answers from what it is given, with no network. It meets the same contract as real models.

`canned_response` is a text, a dict by question name (for `Job.map` also the object itself), or a function of the
request; `func` is a function of the two prompts and a list of the prompt's files, as EDSL's test model has it.
`latency_s` waits, `fail_rate` is the share of calls that fail as a busy service would, `throw_exception` makes calls
fail for good, or a share of them, `exception_probability`; `seed` makes these failures the same in every run. What is
about sampling, `temperature` and its like, makes it another model and changes no answer.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Callable
from typing import Any, cast

import msgspec

from headrace.errors import ListError, ProviderRefused, ProviderUnavailable
from headrace.models.provider import Reply, Request, check_parameters
from headrace.survey.files.file_tokens import file_tokens
from headrace.survey.model import MissingFunction, Model
from headrace.survey.values import repair_text

_FAILING = frozenset({"fail_rate", "throw_exception", "exception_probability", "seed"})
_SAMPLING = frozenset({"temperature", "max_tokens", "top_p", "frequency_penalty", "presence_penalty"})
_PARAMETERS = frozenset({"canned_response", "func", "latency_s"}) | _FAILING | _SAMPLING
_CHARS_PER_TOKEN = 4
_RETRY_AFTER_S = 0.01


class TestModel:
    def __init__(self, model: Model) -> None:
        given = model.parameters
        check_parameters("test", given, _PARAMETERS)
        self._response: Any = given.get("canned_response", "Hello, world")
        self._latency_s = _number(given, "latency_s", most=3600.0)
        self._fail_rate = _number(given, "fail_rate", most=1.0)
        self._refuse_rate = _refuse_rate(given)
        if "temperature" in given:
            _number(given, "temperature", most=100.0)
        self._random = random.Random(given.get("seed"))
        if (func := given.get("func")) is not None:
            self._response = _of_prompts(func)
        if isinstance(self._response, MissingFunction):
            self._response()
        if inspect.iscoroutinefunction(self._response):
            raise ListError("canned_response is async.", fix="Give a plain function; latency_s makes it wait.")

    @property
    def is_instant(self) -> bool:
        return self._latency_s == 0

    async def ask(self, request: Request) -> Reply:
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        if self._fail_rate and self._random.random() < self._fail_rate:
            raise ProviderUnavailable("the test model failed, as its fail_rate asks", retry_after_s=_RETRY_AFTER_S)
        if self._refuse_rate and self._random.random() < self._refuse_rate:
            raise ProviderRefused("the test model failed, as its throw_exception asks")
        text, repaired = _as_text(self._answer(request)), False
        try:
            raw = text.encode()
        except UnicodeEncodeError:
            text, repaired = repair_text(text)
            raw = text.encode()
        prompt_chars = len(request.system_prompt) + len(request.user_prompt)
        of_files = sum(file_tokens("test", "test", each.file) for each in request.files) if request.files else 0
        return Reply(
            text, raw, prompt_chars // _CHARS_PER_TOKEN + of_files, len(text) // _CHARS_PER_TOKEN + 1, repaired
        )

    def is_changed(self) -> bool:
        return False  # it has no key

    async def close(self) -> None:
        pass  # nothing is held open

    def _answer(self, request: Request) -> Any:
        response = self._response
        if isinstance(response, dict):
            by_question = cast("dict[str, Any]", response)
            # Where an object is asked for, a dict that does not know the question is that object.
            is_answer = request.schema.get("type") == "object" and request.question_name not in by_question
            return by_question if is_answer else by_question.get(request.question_name)
        if not callable(response):
            return response
        try:
            return response(request)
        except MemoryError:
            raise  # it says nothing about the call
        except Exception as error:
            raise ProviderRefused(f"canned_response raised {type(error).__name__}: {error}") from error


def _as_text(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    if answer is None:
        return ""
    return msgspec.json.encode(answer).decode() if isinstance(answer, (dict, list, bool)) else str(answer)


def _refuse_rate(given: dict[str, Any]) -> float:
    if not given.get("throw_exception"):
        return 0.0
    return _number({"exception_probability": 1.0, **given}, "exception_probability", most=1.0)


def _of_prompts(func: Any) -> Callable[[Request], Any]:
    """EDSL's `func`, which is called with both prompts and a list of files, as a function of the request."""
    if isinstance(func, MissingFunction):
        func()
    if not callable(func):
        raise ListError(f"func={func!r} cannot be called.", fix="Give a function of both prompts and a list of files.")
    return lambda request: func(request.user_prompt, request.system_prompt, [each.file for each in request.files])


def _number(given: dict[str, Any], name: str, *, most: float) -> float:
    value = given.get(name, 0.0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise ListError(f"{name}={value!r} must be a number from 0 to {most:g}.")
    return float(value)
