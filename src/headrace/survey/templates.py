"""Texts with `{{ names }}` in them. Covers: which names a text uses, and rendering it with plain data, within bounds.

Data is only ever a value here, never a template: a trait that contains `{{ }}` is printed as it stands. A text may come
with a file from elsewhere: one that would take more than MOST_LETTERS or a second of CPU to write is an error.
Does not cover: rules and filters (expressions), nor which names exist (survey.survey, plan.job).
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, cast

import minijinja

from headrace.errors import HeadraceError, SurveyError
from headrace.survey.files.marks import mark_of
from headrace.survey.template_filters import MEASURED, MOST_LETTERS, RenderedTooLarge, check_size, size_of
from headrace.survey.template_texts import PACE, UnboundedText, checked

_MARKS = ("{{", "{%", "{#")
_MOST_CPU_S = 1.0
_FUEL = 10_000_000
_NAME = "text"
_ONE_TAG = re.compile(r"\{\{[-+]?((?:(?!\}\}|\{\{|\{%|\{#).)+?)[-+]?\}\}", re.DOTALL)
_QUOTED_KEY = re.compile(r"""(?<![\w.])([^\W\d]\w*(?:\.\w+)*)\s*\[\s*("[^"\\]+"|'[^'\\]+')\s*\]""")
_WHERE = re.compile(r" \(in [^()]*:\d+\)$")
_UNBOUNDED_GLOBALS = ("namespace", "debug")


class CannotRender(HeadraceError):
    """This text and this data do not fit: one interview's failure, unless no data could fit (`is_in_text`)."""

    def __init__(self, message: str, *, is_in_text: bool = False) -> None:
        super().__init__(message)
        self.is_in_text = is_in_text


def is_template(text: str) -> bool:
    return any(mark in text for mark in _MARKS)


class Template:
    """One text, compiled once. A text without marks is returned as it is."""

    __slots__ = ("_compiled", "_is_weighed", "_render", "names", "source")

    def __init__(self, source: str, where: str) -> None:
        self.source = source
        self.names: frozenset[str] = frozenset()
        self._render: Callable[..., str] | None = None
        self._compiled: _CompiledText | None = None
        self._is_weighed = False
        if is_template(source):
            self._compiled = _compiled(source, where)
            self._is_weighed = bool(self._compiled.weight)
            environment = self._compiled.environment
            self._render = environment.render_template
            undeclared = environment.undeclared_variables_in_template(_NAME, nested=True)
            used = {name for name in undeclared if name.partition(".")[0] not in environment.globals}
            self.names = frozenset(_with_quoted_keys(source, used))

    @property
    def is_static(self) -> bool:
        return self._render is None

    def render(self, context: Mapping[str, Any]) -> str:
        if self._render is None:
            return self.source
        try:
            if self._is_weighed:
                self._begin(context)
            return self._render(_NAME, **context)
        except _RENDER_ERRORS as error:
            raise _cannot_render(error) from None

    def value(self, context: Mapping[str, Any]) -> Any:
        """What a text of one tag stands for, a list or a number perhaps; else the rendered text."""
        if self._compiled is None or self._compiled.expression is None:
            return self.render(context)
        try:
            self._begin(context)
            return self._compiled.environment.eval_expr(self._compiled.expression, **context)
        except _RENDER_ERRORS as error:
            raise _cannot_render(error) from None

    def _begin(self, context: Mapping[str, Any]) -> None:
        if self._compiled is not None and self._compiled.weight:
            _rendering.begin(self._size(context), self._compiled.weight)

    def _size(self, context: Mapping[str, Any]) -> int:
        """How many letters of data the text names and quotes."""
        literals = self._compiled.literals if self._compiled is not None else 0
        return literals + sum(size_of(_found(context, name)) for name in self.names)


def _with_quoted_keys(source: str, used: set[str]) -> set[str]:
    """The names, with `scenario["Review Text"]` as `scenario.Review Text`: the library reports only `scenario`."""
    quoted = [match for match in _QUOTED_KEY.finditer(source) if match[1] in used]
    return (used - {match[1] for match in quoted}) | {f"{match[1]}.{match[2][1:-1]}" for match in quoted}


class _Rendering(threading.local):
    """Size and time of the text that this thread renders, so far."""

    def __init__(self) -> None:
        self._letters = 0
        self._ends_at_s = 0.0

    def begin(self, size: int, weight: int) -> None:
        if size * weight > MOST_LETTERS:
            raise RenderedTooLarge(f"it holds up to {weight:,} copies of {size:,} letters of data")
        self._letters = 0
        self._ends_at_s = time.thread_time() + _MOST_CPU_S

    def pace(self, letters: int) -> bool:
        """Counts a turn of a loop. It is Python code, so that other threads get their turn and Ctrl-C arrives."""
        self._letters += max(0, letters)
        if self._letters > MOST_LETTERS:
            raise RenderedTooLarge(f"more than {MOST_LETTERS:,} letters")
        if time.thread_time() > self._ends_at_s:
            raise RenderedTooLarge(f"it takes more than {_MOST_CPU_S:g} s")
        return False

    def count(self, value: Any) -> Any:
        """Counts the letters of a value that is printed."""
        self.pace(size_of(value))
        return printed(value)

    def measured(self, name: str, value: Any, *args: Any, **options: Any) -> Any:
        """The filter with a check of its result's size before it runs."""
        self.pace(0)
        check_size(name, value, args, options)
        given = "*args, **options" if options else "*args"
        return _inner(name).eval_expr(f"value|{name}({given})", value=value, args=args, options=options)


def printed(value: Any) -> Any:
    """A file's mark in place of a file; any other value as it is."""
    if isinstance(value, str):
        return NotImplemented
    mark = mark_of(value)
    return NotImplemented if mark is None else mark


_rendering = _Rendering()


def _found(context: Any, name: str) -> Any:
    """The value of a dotted name, or the last value on the way to it."""
    found = context
    for field in name.split("."):
        if not isinstance(found, dict) or field not in found:
            break
        found = cast("dict[str, Any]", found)[field]
    return cast(Any, found)


_RENDER_ERRORS = (minijinja.TemplateError, RenderedTooLarge, RecursionError)


def _cannot_render(error: Exception) -> CannotRender:
    match error:
        case minijinja.TemplateError():
            return CannotRender(_reason(error), is_in_text=error.kind.startswith("Unknown"))
        case RenderedTooLarge():
            return CannotRender(f"the text is too large to write: {error}")
        case _:
            return CannotRender("the data for the text is nested too deeply")


def _reason(error: minijinja.TemplateError) -> str:
    message = _WHERE.sub("", error.message)
    if error.kind == "OutOfFuel":
        return "the text takes too long to write"
    # What the guard of `*` says about a text or a list (survey.template_texts).
    if "** operator" in message or message == "invalid operation":
        return "only numbers can be multiplied or negated"
    return message


def forget_compiled() -> None:
    """Empties the cache of compiled texts; templates in use keep theirs."""
    _compiled.cache_clear()


def _plain(**bounds: Any) -> minijinja.Environment:
    return minijinja.Environment(
        undefined_behavior="strict", pycompat=False, keep_trailing_newline=True, fuel=_FUEL, **bounds
    )


@cache
def _inner(name: str) -> minijinja.Environment:
    """The environment in which measured filters run, so that a filter that `map` calls is measured too."""
    environment = _plain()
    for other in MEASURED if name == "map" else ():
        if other != name:
            environment.add_filter(other, partial(_rendering.measured, other))
    return environment


def _bounded() -> minijinja.Environment:
    measured = {name: partial(_rendering.measured, name) for name in MEASURED}
    environment = _plain(filters=measured, finalizer=_rendering.count, globals={PACE: _rendering.pace})
    for name in _UNBOUNDED_GLOBALS:
        environment.remove_global(name)
    return environment


class _CompiledText(NamedTuple):
    """A compiled template. `weight` bounds how far it can multiply its data (0: names alone, nothing to measure),
    `literals` is the length of its quoted texts, `expression` what stands in its only tag.
    """

    environment: minijinja.Environment
    weight: int
    literals: int
    expression: str | None


@lru_cache(maxsize=256)  # a survey is compiled several times on its way to a run: checked, estimated, asked
def _compiled(source: str, where: str) -> _CompiledText:
    """Compile a template. A SurveyError names the place `where` it stands."""
    try:
        text = checked(source)
        environment = _bounded() if text.weight else _plain(finalizer=printed)
        environment.add_template(_NAME, text.source)
    except UnboundedText as error:
        raise SurveyError(
            f"{where}: {error.message}.", fix="Use names, filters, if, for and set; work out the rest in the data."
        ) from None
    except minijinja.TemplateError as error:
        raise SurveyError(
            f"{where}: the text is not a valid template ({_WHERE.sub('', error.message)}).",
            fix='Put one name between {{ and }}; one with a space in it is written {{ scenario["Review Text"] }}.'
            " To show braces as they are, write {{ '{{' }}.",
        ) from None
    except UnicodeEncodeError:
        raise SurveyError(
            f"{where}: the text is not Unicode.", fix="Where it was typed in a shell, set LC_ALL=C.UTF-8."
        ) from None
    one_tag = _ONE_TAG.fullmatch(text.source.strip())
    return _CompiledText(environment, text.weight, text.literals, None if one_tag is None else one_tag[1].strip())
