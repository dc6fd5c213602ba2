"""Makes the provider of a model, chosen by its service name. A provider's module is loaded when a model needs it."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module

from headrace.errors import ListError, Spelled, nearest
from headrace.models.address_list import AddressList
from headrace.models.provider import Provider
from headrace.survey.known_services import SERVICES, WELL_KNOWN_MODELS
from headrace.survey.model import Model

# Module and class. Not imported here: aiohttp alone is 26 MB, which a run of the test model has no use for.
_IN_PROCESS = {
    "function": ("function", "FunctionProvider"),
    "local": ("local", "LocalProvider"),
    "test": ("test_model", "TestModel"),
}


async def load_service(model: Model) -> None:
    """Import what `provider_for` needs in a thread: importing an HTTP client would block an event loop for a while."""
    module, _ = _maker(model)
    if module not in sys.modules:
        await asyncio.to_thread(import_module, module)


def provider_for(model: Model, addresses: AddressList | None = None) -> Provider:
    """The provider, with its parameters checked; nothing is opened yet. One whose addresses are in a file is given
    those that are known (`SharedLimiters.addresses`) before it is asked.
    """
    module, maker = _maker(model)
    provider = getattr(import_module(module), maker)(model)
    if addresses is not None:
        provider.follow(addresses)
    return provider


def check_described(model: Model) -> None:
    """Refuse what `provider_for` refuses of a model's description. Its key is not looked up: who only wants to know
    what a run takes needs none.
    """
    given = model.parameters
    if model.service_name in SERVICES:
        given = {name: value for name, value in given.items() if name != "api_key_env"} | {"api_key": _no_key}
    provider_for(Model(model.name, model.service_name, **given))


def _no_key() -> str:
    raise AssertionError("a model is called that was made only to be checked")


def _maker(model: Model) -> tuple[str, str]:
    """The module of the model's service, and the name of what makes its provider there."""
    name = model.service_name
    if name in SERVICES:
        # A protocol over HTTP: its module has a function of the same name.
        module = maker = SERVICES[name].protocol.name.lower()
    elif name in _IN_PROCESS:
        module, maker = _IN_PROCESS[name]
    else:
        raise _unknown(model)
    return f"headrace.models.protocols.{module}", maker


def _unknown(model: Model) -> ListError:
    known = sorted({*SERVICES, *_IN_PROCESS} - {"function"})
    if model.service_name != model.name:
        said = f"Model {model.name!r}: there is no service {model.service_name!r}."
        return ListError(said, fix=f"{_meant(model.service_name, known)}There are {', '.join(known)}.")
    hint = _meant(model.name, [*WELL_KNOWN_MODELS])
    fix, one_of = f"{hint}Name its service:", f"with one of {', '.join(known)}."
    return ListError(
        f"No service is known for the model {model.name!r}.",
        fix=Spelled(
            f"{fix} Model({model.name!r}, service_name=...) {one_of}",
            command=f"{fix} --model {model.name},service_name=... {one_of}",
        ),
    )


def _meant(name: str, known: list[str]) -> str:
    """The known name that a mistyped one is close to, as a question; nothing where there is none."""
    close = nearest(name.lower(), known)
    return f"{close} " if close.startswith("Did") else ""
