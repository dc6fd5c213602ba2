"""Makes questions: by their class, `QuestionFreeText(...)`, by their kind, `Question("free_text", ...)`, from settings.

Covers: the registry of kinds, and saying what is wrong with the settings' names. Does not cover: what the settings may
hold (each kind).
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from abc import ABCMeta
from pathlib import Path
from typing import Any, TypeVar, cast

from headrace.errors import SurveyError, nearest
from headrace.missing_names import ExplainedABC

_Made = TypeVar("_Made")
# Written beside the settings by EDSL; they say nothing about the question.
_EDSL_REMARKS = frozenset({"edsl_version", "edsl_class_name"})
_KIND_NAMES = ("kind", "question_type")
_kinds: dict[str, KindOfQuestion] = {}


class KindOfQuestion(ExplainedABC, ABCMeta):
    """The class of questions' classes: calling one checks the settings' names first, calling the base takes a kind."""

    kind: str
    question_type: str

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **options: Any) -> None:
        super().__init__(name, bases, namespace, **options)
        if "__repr__" not in namespace:
            setattr(cls, "__repr__", _as_written)  # noqa: B010 # a dataclass leaves alone what is there
        if "kind" in namespace:
            cls.question_type = cls.kind  # as EDSL calls it
            if cls.__module__.rpartition(".")[0] != __package__:
                _load_kinds()  # so that none of ours comes after, and takes the place of, a program's own
            _kinds[cls.kind] = cls

    def __call__(cls: type[_Made], *given: Any, **settings: Any) -> _Made:
        kind: KindOfQuestion = cast(Any, cls)  # pyright: ignore[reportGeneralTypeIssues]
        if not hasattr(kind, "kind"):
            made: Any = kind_named(*given, **_only_kind(settings))
            return made(**settings)
        if given:
            raise SurveyError(
                f"{cls.__name__} was given {given[0]!r} without saying which setting that is.",
                fix=f'Name every setting: {cls.__name__}(question_name="q", question_text="...").',
            )
        kind.check_settings(settings)
        return cast(Any, ABCMeta).__call__(cls, **settings)

    def check_settings(cls, settings: dict[str, Any]) -> None:
        fields = {field.name: field for field in dataclasses.fields(cls)}  # pyright: ignore[reportArgumentType]
        for name in settings:
            if name not in fields:
                raise SurveyError(f"A {cls.kind} question has no setting {name!r}.", fix=nearest(name, fields))
        for name, field in fields.items():
            is_required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if is_required and name not in settings:
                raise SurveyError(f"A {cls.kind} question needs {name!r}.", fix="Add it.")


def _as_written(question: Any) -> str:
    """The question as a program would write it: without the settings that are left at their default."""
    held = {field: getattr(question, field.name) for field in dataclasses.fields(question)}
    shown = (f"{field.name}={value!r}" for field, value in held.items() if not _is_default(field, value))
    return f"{type(question).__name__}({', '.join(shown)})"


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default_factory is not dataclasses.MISSING:
        return value == field.default_factory()
    return field.default is not dataclasses.MISSING and value == field.default


def kind_named(kind: Any = None, *more: Any) -> KindOfQuestion:
    """The class of the questions of a kind."""
    if more:
        raise SurveyError(f"Question({kind!r}, ...) was given {more[0]!r} without saying which setting that is.")
    if kind not in _kinds:
        _load_kinds()
    if kind not in _kinds:
        raise SurveyError(f"There is no kind of question called {kind!r}.", fix=nearest(str(kind), _kinds))
    return _kinds[kind]


def kinds_by_name() -> list[KindOfQuestion]:
    _load_kinds()
    return [_kinds[name] for name in sorted(_kinds)]


@functools.cache
def _load_kinds() -> None:
    """Import every module of this folder; each registers its kinds."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")


def split_kind(settings: dict[str, Any]) -> tuple[KindOfQuestion, dict[str, Any]]:
    """The kind that stored settings name, and the settings themselves."""
    given = {name: value for name, value in settings.items() if name not in _EDSL_REMARKS}
    return kind_named(**_only_kind(given)), given


def _only_kind(settings: dict[str, Any]) -> dict[str, Any]:
    """Takes the kind out of the settings, by either of its names."""
    found = [settings.pop(name) for name in _KIND_NAMES if name in settings]
    return {"kind": found[0]} if found else {}
