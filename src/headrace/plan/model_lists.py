"""The models and services that Headrace knows, as lists: `Model.available` and `Model.services`.

Does not cover: asking a service what it has. Any name is sent to its service as it is written, known here or not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from headrace.edsl_names import warn_once
from headrace.errors import ListError, OptionError, nearest
from headrace.plan.lists import ModelList, ScenarioList
from headrace.survey.known_services import SERVICES, WELL_KNOWN_MODELS, known_as
from headrace.survey.model import Model

_IN_PROCESS = ("local", "test")
_FORMATS = ("model_list", "scenario_list")
_WITHOUT_EFFECT = ("force_refresh", "verbose")


def services() -> ScenarioList:
    """A scenario for each service; the test model belongs to none."""
    return ScenarioList.from_list("service", sorted([*SERVICES, "local"]))


def available(
    search_term: str | None, service_name: str | None, local_only: bool, output_format: str, rest: Iterable[str]
) -> ModelList | ScenarioList:
    _check(service_name, output_format, rest)
    models = [Model(name) for name in WELL_KNOWN_MODELS if search_term is None or search_term in name]
    wanted = known_as(service_name)
    found = [
        model
        for model in models
        if (wanted is None or model.service_name == wanted) and (not local_only or _is_at_hand(model))
    ]
    if output_format == "model_list":
        return ModelList(found)
    return ScenarioList({"model_name": model.name, "service_name": model.service_name} for model in found)


def _check(service_name: str | None, output_format: Any, rest: Iterable[str]) -> None:
    known = (*SERVICES, *_IN_PROCESS)
    if service_name is not None and known_as(service_name) not in known:
        raise ListError(f"There is no service {service_name!r}.", fix=nearest(str(service_name), known))
    if output_format not in _FORMATS:
        raise OptionError(f"output_format={output_format!r} is not known.", fix=f"Use {' or '.join(_FORMATS)}.")
    for name in rest:
        if name not in _WITHOUT_EFFECT:
            raise OptionError(f"There is no option {name!r}.", fix=nearest(name, ("search_term", "service_name")))
        warn_once(f"{name}= of Model.available has no effect in Headrace: no service is asked.")


def _is_at_hand(model: Model) -> bool:
    """Whether a model can be asked without a further key."""
    service = SERVICES.get(model.service_name)
    return service is None or service.key_env is None or bool(os.environ.get(service.key_env))
