"""Which provider serves a model, by its service name."""

from __future__ import annotations

from collections.abc import Callable

from headrace.errors import ListError, nearest
from headrace.providers.canned import CannedProvider
from headrace.providers.contract import Provider
from headrace.survey.models import Model


def _local(model: Model) -> Provider:
    from headrace.providers.local import LocalProvider  # only for those who have one

    return LocalProvider(model)


_SERVICES: dict[str, Callable[[Model], Provider]] = {"test": CannedProvider, "local": _local}


def provider_for(model: Model) -> Provider:
    make = _SERVICES.get(model.service_name)
    if make is None:
        raise ListError(
            f"No service is known for the model {model.name!r}.", fix=nearest(model.service_name, _SERVICES)
        )
    return make(model)
