"""Models of EDSL's: name, service, and the parameters that the service takes here.

EDSL writes every parameter of a model with its usual value, also those that a service ignores: what would be refused
here is left out, and noted where its value was somebody's choice. Does not cover: calling a model (models).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from headrace.edsl_files.carried_over import CarriedOver
from headrace.edsl_files.given_data import EdslData, refuse_other_class
from headrace.edsl_files.list_reading import checked_item, checked_items
from headrace.errors import EdslFileError
from headrace.plan.lists import ModelList
from headrace.survey.known_services import SERVICES, ModelProtocol, known_as
from headrace.survey.model import FromFile, Model

_SAMPLING = {"temperature", "max_tokens", "top_p"}
_OF_CHAT = _SAMPLING | {"frequency_penalty", "presence_penalty", "logprobs", "seed", "stop"}
_KNOWN: dict[ModelProtocol | None, frozenset[str]] = {
    ModelProtocol.OPENAI_CHAT: frozenset(_OF_CHAT),
    ModelProtocol.ANTHROPIC_MESSAGES: frozenset(_SAMPLING | {"stop", "top_k"}),
    None: frozenset(
        {*_OF_CHAT, "canned_response", "throw_exception", "exception_probability"} - {"logprobs", "stop"}
    ),  # the test model
}
_CONNECTION = ("base_url", "api_key_env")
# Google's names, which its compatible address does not know.
_RENAMED = {"maxOutputTokens": "max_tokens", "topP": "top_p", "stopSequences": "stop"}
# What EDSL writes unasked.
_USUAL: dict[str, tuple[Any, ...]] = {
    "frequency_penalty": (0,), "presence_penalty": (0,), "logprobs": (False,), "top_logprobs": (3,), "topK": (1,),
    "stop": ([],), "use_cache": (True, False), "top_k": (1,), "skip_api_key_check": (True, False),
}  # fmt: skip
_PARTS = frozenset({"model", "parameters", "inference_service", "connection", "edsl_version", "edsl_class_name"})


def model_list_of(data: EdslData) -> ModelList:
    found: list[Model] | None = None
    for name, value in data.members():
        if name == "models":
            found = models_of(value, data)
        else:
            refuse_other_class(data, ("ModelList",), name, value)
    if found is None:
        raise EdslFileError(f"{data.place} holds no list of models.", fix="Give what EDSL's ModelList wrote.")
    return ModelList(found)


def model_of(data: EdslData) -> Model:
    held = dict(data.members())
    for name, value in held.items():
        if name != "edsl_class_name":  # each service has a class of its own
            refuse_other_class(data, ("LanguageModel",), name, value)
    return model_from(held, data)


def models_of(items: Any, data: EdslData) -> list[Model]:
    """The models; as many as a person writes."""
    return [model_from(item, data) for item in checked_items(items, "models", data.notes)]


def model_from(item: Any, data: EdslData) -> Model:
    """One model. An address or a key variable that a file gives is a claim, which a user has to allow."""
    notes = data.notes
    held = checked_item(item, "a model", notes)
    name, service = held.get("model"), held.get("inference_service")
    if not isinstance(name, str):
        raise EdslFileError(f"{notes.place}: a model has no name.", fix="Save it again in EDSL.")
    for part in held.keys() - _PARTS:
        if held[part]:
            notes.note(f"model {name[:60]!r}: its {part[:60]}")
    connection: Any = held.get("connection") or {}
    given: Any = held.get("parameters") or {}
    if not isinstance(given, Mapping) or not isinstance(connection, Mapping):
        raise EdslFileError(f"{notes.place}: model {name[:60]!r} is not as EDSL writes it.", fix="Save it again.")
    reached = _reached(cast("Mapping[str, Any]", connection))
    kept = _parameters(cast("Mapping[str, Any]", given), name, service, notes)
    model = Model(name, service if isinstance(service, str) else None, **kept, **reached)
    if data.path is not None and reached:
        model.origin = FromFile(str(data.path), data.allowed)
    return model


def _reached(connection: Mapping[str, Any]) -> dict[str, Any]:
    return {each: connection[each] for each in _CONNECTION if connection.get(each)}


def _parameters(given: Mapping[str, Any], name: str, service: Any, notes: CarriedOver) -> dict[str, Any]:
    found = SERVICES.get(known_as(service) or "")
    known = _KNOWN[found.protocol if found is not None else None]
    kept: dict[str, Any] = {}
    for parameter, value in given.items():
        ours = _RENAMED.get(parameter, parameter)
        if ours in known and value is not None and value not in _usual(ours):
            kept[ours] = value
        elif ours not in known and value is not None and value not in _usual(parameter):
            notes.note(f"model {name[:60]!r}: the parameter {parameter[:60]}={str(value)[:60]}")
    return kept


def _usual(parameter: str) -> Iterable[Any]:
    return _USUAL.get(parameter, ())
