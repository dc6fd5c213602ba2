"""Answers with parts: a matrix of items and options, a dict, what a text holds, a pydantic model.

Does not cover: lists (list), and shares of a budget (number).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import msgspec

from headrace.errors import SurveyError
from headrace.survey.questions.base import Schema, as_example
from headrace.survey.questions.choice import chosen, shown_option
from headrace.survey.questions.json_answers import JsonQuestion, are_codes, as_list, by_name, check_distinct
from headrace.survey.questions.typed_values import (
    check_types,
    closed_object,
    fitted,
    object_schema,
    schema_of_type,
    type_name,
)
from headrace.survey.repair.json_texts import Found, json_in
from headrace.survey.repair.option_texts import KnownOptions
from headrace.survey.schemas import SchemaCheck, as_schema

_MOST_CELLS = 100_000


@dataclass(frozen=True, kw_only=True)
class QuestionMatrix(JsonQuestion):
    """One of the options for each item: `{"price": 3, "taste": 5}`. `permissive=True` accepts anything for any item.
    `randomize_items=True` shows the items in another order in each interview, but for `items_to_pin`.
    """

    kind = "matrix"
    example_settings = as_example(
        question_name="train_ride",
        question_text="How was your train ride?",
        question_items=["Seat", "Noise", "Staff"],
        question_options=[1, 2, 3, 4],
        option_labels={1: "Poor", 4: "Excellent"},
    )

    question_items: Sequence[Any] | str
    question_options: Sequence[Any] | str
    option_labels: Mapping[Any, str] = field(default_factory=dict[Any, str])
    permissive: bool = False
    randomize_items: bool = False
    items_to_pin: Sequence[Any] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "items_to_pin", tuple(self.items_to_pin or ()))
        for setting in ("question_items", "question_options"):
            given = as_list(self.question_name, setting, getattr(self, setting))
            object.__setattr__(self, setting, given)
            if not isinstance(given, str):
                check_distinct(self.question_name, setting, given)
        self._check_size()
        # JSON, and so the run file, has only text for keys.
        labels = {str(option): str(label) for option, label in dict(self.option_labels or {}).items()}
        object.__setattr__(self, "option_labels", labels)
        if not isinstance(self.question_options, str):
            for option in labels:
                if option not in map(str, self.question_options):
                    raise SurveyError(
                        f"Question {self.question_name!r} labels {option}, which is not one of its options.",
                        fix=f"Label some of {list(self.question_options)}.",
                    )

    def _check_size(self) -> None:
        """Its schema names each option for each item: a request would take gigabytes."""
        items, options = self.question_items, self.question_options
        if isinstance(items, str) or isinstance(options, str) or len(items) * len(options) <= _MOST_CELLS:
            return
        raise SurveyError(
            f"Question {self.question_name!r} has {len(items):,} items and {len(options):,} options.",
            fix=f"Ask about fewer: items times options may be {_MOST_CELLS:,}.",
        )

    @property
    def pinned_items(self) -> Sequence[Any] | None:
        return self.items_to_pin if self.randomize_items else None

    @property
    def items(self) -> list[str]:
        return [str(item).strip() for item in self.question_items]

    @property
    def options(self) -> tuple[Any, ...]:
        return tuple(self.question_options)

    def listing(self) -> str:
        items = "\n".join(f"- {item}" for item in self.items)
        options = "\n".join(f"- {shown_option(option)}{self._label(option)}" for option in self.options)
        return f"Items:\n{items}\n\nOptions:\n{options}"

    def instructions(self) -> str:
        shape = ", ".join(f'"{item}": ...' for item in self.items)
        return f"Choose one of the options for each item.\nAnswer with a JSON object like this: {{{shape}}}"

    def schema(self) -> Schema:
        option: Schema = {} if self.permissive else {"enum": list(self.options)}
        return closed_object(dict.fromkeys(self.items, option))

    def accept(self, given: Any) -> dict[str, Any]:
        held = cast("dict[str, Any]", self.shaped(given))
        if self.permissive:
            return held
        coded = are_codes(held, self.items)
        return {item: self._option(value, coded) for item, value in by_name(held, self.items, what="item").items()}

    def _option(self, given: Any, coded: bool) -> Any:
        """The option that is meant: where items came by their numbers, options did too."""
        if coded and not isinstance(given, bool) and str(given).isdecimal() and int(given) < len(self.options):
            return self.options[int(given)]
        return chosen(given, self._known)

    @cached_property
    def _known(self) -> KnownOptions:
        return KnownOptions(self.options, None)

    def _label(self, option: Any) -> str:
        label = self.option_labels.get(str(option))
        return f": {label}" if label else ""


@dataclass(frozen=True, kw_only=True)
class SchemaQuestion(JsonQuestion):
    """An object that follows a JSON schema, which the kind makes of its settings."""

    def schema(self) -> Schema:
        return self._schema

    def make_schema(self) -> Schema:
        raise NotImplementedError

    def find(self, text: str) -> Found | None:
        """An answer that has a key "answer" of its own looks like an envelope: it is one where nothing else fits."""
        if "answer" in self._schema.get("properties", ()):
            whole = json_in(text, self.shapes, unwrap=False)
            if whole is None or self._accepts(whole.value):
                return whole
        return super().find(text)

    def accept(self, given: Any) -> Any:
        answer = fitted(self.shaped(given), self._schema)
        self.check(answer)
        return answer

    def check(self, answer: Any) -> None:
        check_types(answer, self._schema)

    @cached_property
    def _schema(self) -> Schema:
        return self.make_schema()


@dataclass(frozen=True, kw_only=True)
class QuestionDict(SchemaQuestion):
    """A value for each of `answer_keys`; None where the model does not know one. `permissive=True` lets keys be missing
    and values be of any type.
    """

    kind = "dict"
    example_settings = as_example(
        question_name="book",
        question_text="Which book would you give a friend?",
        answer_keys=["title", "themes", "pages"],
        value_types=["str", "list[str]", "int"],
        value_descriptions=["What it is called", "What it is about", "How long it is"],
    )

    answer_keys: Sequence[str] | str
    value_types: Sequence[Any] | str | None = None
    value_descriptions: Sequence[str] | str | None = None
    permissive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        keys = as_list(self.question_name, "answer_keys", self.answer_keys)
        object.__setattr__(self, "answer_keys", keys)
        if not isinstance(keys, str):
            check_distinct(self.question_name, "answer_keys", keys)
        for setting in ("value_types", "value_descriptions"):
            given = getattr(self, setting)
            if given is not None:
                object.__setattr__(self, setting, self._for_each_key(setting, given))

    def instructions(self) -> str:
        keys = "\n".join(f"- {key}" for key in map(self._described, range(len(self.answer_keys))))
        return f"Answer with a JSON object that has these keys:\n{keys}\nWrite null where there is no value for a key."

    def make_schema(self) -> Schema:
        types = self.value_types or ["str"] * len(self.answer_keys)
        schema = closed_object(
            {
                str(key): {} if self.permissive else schema_of_type(name)
                for key, name in zip(self.answer_keys, types, strict=True)
            }
        )
        return {**schema, "required": [], "additionalProperties": True} if self.permissive else schema

    def _for_each_key(self, setting: str, given: Any) -> Any:
        held = as_list(self.question_name, setting, given)
        if isinstance(held, str):
            return held
        if not isinstance(self.answer_keys, str) and len(held) != len(self.answer_keys):
            raise SurveyError(
                f"Question {self.question_name!r} has {len(held)} {setting} for {len(self.answer_keys)} answer_keys.",
                fix="Give one for each.",
            )
        return tuple(type_name(self.question_name, each) for each in held) if setting == "value_types" else held

    def _described(self, place: int) -> str:
        name = f" ({self.value_types[place]})" if self.value_types else ""
        told = f": {self.value_descriptions[place]}" if self.value_descriptions else ""
        return f'"{self.answer_keys[place]}"{name}{told}'


@dataclass(frozen=True, kw_only=True)
class QuestionExtract(SchemaQuestion):
    """What a text says, in the form of `answer_template`: its keys, and values of the same types; None for what is not
    in the text.
    """

    kind = "extract"
    example_settings = as_example(
        question_name="order",
        question_text="Two of the green lamps, please, to be sent to Lima.",
        answer_template={"article": "blue chair", "quantity": 1, "city": "Oslo"},
    )

    answer_template: Mapping[str, Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        template = self.answer_template
        if not isinstance(template, Mapping) or not template:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(
                f"Question {self.question_name!r} has {template!r} for its answer_template.",
                fix='Give an example of the answer, like {"name": "John Doe", "age": 30}.',
            )

    def instructions(self) -> str:
        example = msgspec.json.encode(dict(self.answer_template)).decode()
        return (
            "Extract this from the text above. Answer with a JSON object that has the keys of this example, "
            f"with values from the text:\n{example}\nWrite null where the text does not say it."
        )

    def make_schema(self) -> Schema:
        return object_schema(self.answer_template)


@dataclass(frozen=True, kw_only=True)
class QuestionPydantic(SchemaQuestion):
    """An object that fits a pydantic model. The model's JSON schema is kept and stored, its class is not: validators
    written in Python are not part of it.
    """

    kind = "pydantic"
    literal_settings = frozenset({"pydantic_model", "pydantic_model_schema"})
    example_settings = as_example(
        question_name="meeting",
        question_text="When do we meet? We said Tuesday at 9, for an hour or so.",
        pydantic_model_schema={
            "title": "Meeting",
            "type": "object",
            "properties": {
                "day": {"type": "string", "description": "Day of the week"},
                "hour": {"type": "integer", "minimum": 0, "maximum": 23},
            },
            "required": ["day", "hour"],
        },
    )

    pydantic_model: Any = field(default=None, metadata={"in_files": False})
    pydantic_model_schema: Schema | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pydantic_model is not None and not hasattr(self.pydantic_model, "model_json_schema"):
            raise SurveyError(
                f"Question {self.question_name!r} has {self.pydantic_model!r} for its pydantic_model.",
                fix="Give a class made from pydantic.BaseModel.",
            )
        given = self.pydantic_model if self.pydantic_model is not None else self.pydantic_model_schema
        if given is None:
            raise SurveyError(f"Question {self.question_name!r} has no pydantic_model.", fix="Give one.")
        schema = as_schema(given)
        if schema.get("type") != "object":
            raise SurveyError(f"Question {self.question_name!r} has a model that is no object.", fix="Give it fields.")
        object.__setattr__(self, "pydantic_model_schema", schema)
        object.__setattr__(self, "pydantic_model", None)

    def instructions(self) -> str:
        schema = msgspec.json.encode(self.make_schema()).decode()
        return f"Answer with one JSON object that follows this JSON schema:\n{schema}"

    def make_schema(self) -> Schema:
        return cast(Schema, self.pydantic_model_schema)

    def check(self, answer: Any) -> None:
        self._compiled.accept(answer)

    @cached_property
    def _compiled(self) -> SchemaCheck:
        return SchemaCheck(self.make_schema(), f"Question {self.question_name!r}")
