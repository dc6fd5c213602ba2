"""A model written as one text, `gpt-4o,temperature=0.2`: as `--model` and HEADRACE_MODEL have it.

Does not cover: what the parameters mean (models.protocols).
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from headrace.errors import ListError, OptionError, Spelled
from headrace.survey.known_services import key_names
from headrace.survey.model import Model

DEFAULT_MODEL_VARIABLE = "HEADRACE_MODEL"


def model_from_text(text: str, where: str) -> Model:
    """Makes a model of `test,canned_response=Good,latency_s=0.1`; values are JSON where they can be."""
    name, *parameters = _parts(text)
    given: dict[str, Any] = {}
    for parameter in parameters:
        key, equals, value = parameter.partition("=")
        if not equals or not key.isidentifier():
            raise OptionError(f"{where} {text!r}: {parameter!r} is not a parameter.", fix="Write name,key=value,...")
        given[key] = _value(value)
    return Model(name, **given)


def default_model() -> Model:
    """The model of a job that names none: what HEADRACE_MODEL says, else an error that names the models at hand."""
    if written := os.environ.get(DEFAULT_MODEL_VARIABLE):
        return model_from_text(written, DEFAULT_MODEL_VARIABLE)
    raise ListError("The job has no model.", fix=_models_at_hand())


def _models_at_hand() -> Spelled:
    """The fix of a job without a model: how to add one, and which services have a key here."""
    looked_for = key_names()
    found = [name for name in looked_for if os.environ.get(name)]
    keys = f"found {', '.join(found)}" if found else f"none is set of {', '.join(looked_for)}"
    words = (
        "Add one with {}: {} needs no key and no network, {} answers what you tell it to, and {} or another service's"
        f" reads its key from the environment ({keys}). The variable HEADRACE_MODEL may name one for all jobs."
    )
    program = words.format("job.by(...)", 'Model("local")', 'Model("test", canned_response="...")', 'Model("gpt-4o")')
    command = words.format("--model", "local", "test,canned_response=...", "gpt-4o")
    return Spelled(program, command=command)


def _parts(text: str) -> list[str]:
    """Splits at commas, but not at those inside a JSON value."""
    parts, depth, is_quoted = [""], 0, False
    for before, letter in zip(" " + text, text, strict=False):
        is_quoted ^= letter == '"' and before != "\\"
        depth += 0 if is_quoted else (letter in "[{") - (letter in "]}")
        if letter == "," and depth <= 0 and not is_quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
