"""Texts with `{{ names }}` in them. Covers: which names a text uses, and rendering it with plain data.

Data is only ever a value here, never a template: a trait that contains `{{ }}` is printed as it stands.
Does not cover: rules and filters (expressions), nor which names exist (survey.survey, plan.job).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import minijinja

from headrace.errors import HeadraceError, SurveyError

_MARKS = ("{{", "{%", "{#")


class CannotRender(HeadraceError):
    """This text and this data do not fit: one interview's failure, unless no data could fit (`is_in_text`)."""

    def __init__(self, message: str, *, is_in_text: bool = False) -> None:
        super().__init__(message)
        self.is_in_text = is_in_text


def is_template(text: str) -> bool:
    return any(mark in text for mark in _MARKS)


class Template:
    """One text, compiled once. A text without marks is returned as it is."""

    __slots__ = ("_render", "names", "source")

    def __init__(self, source: str, where: str) -> None:
        self.source = source
        self.names: frozenset[str] = frozenset()
        self._render: Callable[..., str] | None = None
        if is_template(source):
            environment = _compiled(source, where)
            self._render = environment.render_template
            undeclared = environment.undeclared_variables_in_template("text", nested=True)
            self.names = frozenset(name for name in undeclared if name.partition(".")[0] not in environment.globals)

    @property
    def is_static(self) -> bool:
        return self._render is None

    def render(self, context: Mapping[str, Any]) -> str:
        if self._render is None:
            return self.source
        try:
            return self._render("text", **context)
        except minijinja.TemplateError as error:
            message = error.message.removesuffix(" (in text:1)")
            raise CannotRender(message, is_in_text=error.kind.startswith("Unknown")) from None


def forget_compiled() -> None:
    """Those that are in use stay with who uses them."""
    _compiled.cache_clear()


@lru_cache(maxsize=256)  # a survey is compiled several times on its way to a run: checked, estimated, asked
def _compiled(source: str, where: str) -> minijinja.Environment:
    environment = minijinja.Environment(undefined_behavior="strict", pycompat=False, keep_trailing_newline=True)
    try:
        environment.add_template("text", source)
    except minijinja.TemplateError as error:
        raise SurveyError(
            f"{where}: the text is not a valid template ({error.message}).",
            fix="Put one name between {{ and }}, without spaces in it; to show braces as they are, write {{ '{{' }}.",
        ) from None
    except UnicodeEncodeError:
        raise SurveyError(
            f"{where}: the text is not Unicode.", fix="Where it was typed in a shell, set LC_ALL=C.UTF-8."
        ) from None
    return environment
