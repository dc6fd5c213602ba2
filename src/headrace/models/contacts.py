"""The contacts of a model: the addresses it calls, the variable its key is read from, the model file it loads.

An address file counts as one contact, `@` and its path: who allows that lets it be read, and each address that it ever
names be contacted.
Covers: listing them from a model's description, without reading the key or opening anything.
Does not cover: whether it may be done (interviews.permissions), or doing it (models.services).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

import msgspec

from headrace.errors import NotConfirmed, OptionError, Spelled
from headrace.models.http_client.address_file import resolved_file
from headrace.models.http_client.http_options import HttpOptions, usual_key
from headrace.survey.known_services import SERVICES
from headrace.survey.model import Model, address_file_of

NO_OPTIONS = Spelled("", command="")


class Contact(msgspec.Struct, frozen=True, kw_only=True):
    """One address of one model, its address file, or the model file it loads. `key` is the variable whose value is sent
    there.

    `has_usual_key`: the service's own key goes to the service's own address, or none does.
    """

    model: str
    address: str
    key: str | None = None
    has_usual_key: bool = True

    def is_among(self, allowed: frozenset[str]) -> bool:
        """Whether a user who named these has allowed it. A key that is not the address's own has to be named too."""
        is_named = self.address in allowed or self.address in _resolved(allowed)
        return is_named and (self.has_usual_key or self.key in allowed)

    @property
    def to_allow(self) -> tuple[str, ...]:
        """The names that a user has to give to allow it."""
        return (self.address,) if self.key is None or self.has_usual_key else (self.address, self.key)


def contacts_of(model: Model) -> list[Contact]:
    """Lists one contact for each address of the model; none for a model that works inside this process."""
    given = model.parameters
    if model.service_name == "local" and given.get("path") is not None:
        return [Contact(model=model.name, address=str(Path(str(given["path"])).expanduser().resolve()))]
    if model.service_name not in SERVICES:
        return []
    service = SERVICES[model.service_name]
    addresses = HttpOptions.of(model.name, service, given).base_urls
    usual = usual_key(service, addresses)
    if (file := address_file_of(given)) is not None:
        addresses = (f"@{resolved_file(file)}",)
    key = None if "api_key" in given else given.get("api_key_env") or usual
    return [
        Contact(model=model.name, address=address, key=key, has_usual_key=key in (None, usual)) for address in addresses
    ]


def _resolved(allowed: frozenset[str]) -> set[str]:
    """The address files among these names, as `contacts_of` writes them: a user may type a shorter path."""
    return {f"@{resolved_file(name[1:])}" for name in allowed if name.startswith("@")}


def allowed_names(given: str | Iterable[str]) -> frozenset[str]:
    """What `allow=` names: addresses, variables of keys, model files."""
    names = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(name, str) for name in names):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"allow={names!r} must be texts.", fix='Like allow=["https://api.openai.com/v1"].')
    return frozenset(name.rstrip("/") or name for name in names)


def is_allowed(model: Model) -> bool:
    """Whether the program wrote the model itself, or allows all that the file names that it was read from."""
    return model.origin is None or all(contact.is_among(model.origin.allowed) for contact in contacts_of(model))


def check_allowed(model: Model) -> None:
    """Refuse a model that was read from a run file and that the program has not allowed."""
    if model.origin is None:
        return
    refused = [contact for contact in contacts_of(model) if not contact.is_among(model.origin.allowed)]
    if refused:
        raise not_confirmed(Path(model.origin.path), refused)


def not_confirmed(
    path: Path, refused: Iterable[Contact], more: str = "", to_give: Spelled = NO_OPTIONS
) -> NotConfirmed:
    """The error that names what a run file would have us contact, and how a program allows it. `to_give` are the
    options of the run that it has to give as well.
    """
    contacts = list(refused)
    allow = list(dict.fromkeys(name for contact in contacts for name in contact.to_allow))
    listed = "; ".join(dict.fromkeys(map(described, contacts)))
    is_study = path.suffix.lower() in (".yaml", ".yml", ".json")
    verb, also = ("load", "; Survey.load has the same option") if is_study else ("open", "")
    options = f", and run it with{to_give}" if to_give else ""
    return NotConfirmed(
        f"{path} was not made by you here, or was changed since, and names {listed}.{more}",
        path=path,
        allow=allow,
        fix=Spelled(
            f"If you trust it: Job.{verb}({str(path)!r}, allow={allow!r}){also}{options}.",
            command=f"If you trust it: {' '.join(f'--allow {shlex.quote(name)}' for name in allow)}{to_give.command}",
        ),
    )


def described(contact: Contact) -> str:
    """Describes a contact in words that are safe for a terminal: a model's name may be anything."""
    is_file = contact.address.startswith("@")
    if not is_file and (contact.model == contact.address or "://" not in contact.address):
        return f"the model file {contact.address!r}"
    if contact.key is None:
        key = ""
    elif contact.has_usual_key:
        key = f", with the key in {contact.key}"
    else:
        key = f", with the value of {contact.key}, which is not that service's own key"
    where = f"whatever addresses are in {contact.address[1:]!r}" if is_file else contact.address
    return f"{ascii(contact.model)[1:-1]} at {where}{key}"
