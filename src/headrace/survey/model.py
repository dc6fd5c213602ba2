"""A model described: its name, its service and its parameters. Does not cover: reaching it (models)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.errors import ListError, nearest
from headrace.missing_names import missing_attribute
from headrace.stand_ins import HostedVerbs
from headrace.survey.function_reference import function_reference
from headrace.survey.known_services import known_as, service_of
from headrace.survey.secrecy import refuse_secrets
from headrace.survey.values import UnusableValue, decode_value, encode_value

if TYPE_CHECKING:
    from headrace.plan.lists import ModelList, ScenarioList

_FUNCTION = "function"
_IN_PROGRAM = "Save the job without it, and add the model in the program."
_ABOUT_CALLING = frozenset(
    {
        "affinity",
        "api_key",
        "api_key_env",
        "connect_timeout_s",
        "max_response_bytes",
        "price",
        "read_timeout_s",
        "requests_per_minute",
        "timeout_s",
        "tokens_per_minute",
    }
)


class FromFile(NamedTuple):
    """The run file that a model was read from, and what the program allows it to contact."""

    path: str
    allowed: frozenset[str]


class Model(HostedVerbs):
    """`Model("test", canned_response="Good")`: a model by name, with whatever parameters its service knows.

    `service_name` follows from the name where it can: gpt-... is OpenAI's, claude-... is Anthropic's, gemini-...
    Google's. `model=` is another way to give the name. Without a name it is the model that HEADRACE_MODEL names.
    """

    __slots__ = ("name", "origin", "parameters", "service_name")

    def __init__(self, name: str | None = None, service_name: str | None = None, **parameters: Any) -> None:
        name, parameters = _one_name(name, parameters), _in_our_words(parameters)
        if name is None:
            default = _default_model()
            name, service_name = default.name, service_name or default.service_name
            parameters = {**default.parameters, **parameters}
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"{name!r} is not the name of a model.", fix='Write it like Model("test").')
        if service_name is not None and not isinstance(service_name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"Model {name!r}: service_name={service_name!r} is not the name of a service.")
        refuse_secrets(name, parameters)
        self.name = name
        self.service_name = known_as(service_name) or service_of(name, has_address="base_url" in parameters)
        self.parameters: dict[str, Any] = parameters
        self.origin: FromFile | None = None  # None: this program wrote it

    @classmethod
    def from_function(cls, function: Callable[[Any], Awaitable[Any]], *, name: str | None = None) -> Model:
        """A model of your own: an async function of one request, a `models.provider.Request`.

        It returns a text, any JSON value, `{"answer": ..., "comment": ...}`, or a `models.provider.Reply`.
        """
        if not callable(function):
            raise ListError(f"{function!r} is not a function.", fix="Give an async function of one request.")
        named = function if hasattr(function, "__name__") else getattr(function, "func", type(function))
        own_name = str(getattr(named, "__name__", "function")).strip("<>")
        return cls(name or own_name, service_name="function", function=function)

    @staticmethod
    def available(
        search_term: str | None = None,
        service_name: str | None = None,
        *,
        local_only: bool = False,
        output_format: str = "model_list",
        **without_effect: Any,
    ) -> ModelList | ScenarioList:
        """List the models whose names Headrace knows, without asking any service; services have many more.

        With `local_only`, those of services that need no key or have one here. `output_format` is "model_list" or
        "scenario_list".
        """
        from headrace.plan.model_lists import available

        return available(search_term, service_name, local_only, output_format, without_effect)

    @staticmethod
    def services() -> ScenarioList:
        """List the services that Headrace can reach, as scenarios with one field, `service`."""
        from headrace.plan.model_lists import services

        return services()

    @property
    def model(self) -> str:
        """The model's name, by the word that results use: `model.model`."""
        return self.name

    @property
    def inference_service(self) -> str:
        """The service's name, by the word that results use: `model.inference_service`."""
        return self.service_name

    @property
    def functions(self) -> dict[str, Any]:
        """The parameters that are functions. They are not stored: each program gives its own."""
        return {name: value for name, value in self.parameters.items() if callable(value)}

    def identity_row(self) -> bytes:
        """The row that identifies a model: without its price, rate limits and time-outs. An address file is there by
        its name alone: its folder and the addresses in it may change.
        """
        given = {name: value for name, value in self.parameters.items() if name not in _ABOUT_CALLING}
        if (file := address_file_of(given)) is not None:
            given["base_url"] = f"@{PurePath(file).name}"
        return Model(self.name, service_name=self.service_name, **given).to_row()

    def to_row(self) -> bytes:
        """The model as stored. A function is stored as a reference that can be compared, not called."""
        given = sorted(self.parameters.items())  # the order they were written in means nothing
        held = {name: to_reference(value) if callable(value) else [value] for name, value in given}
        try:
            return encode_value({"name": self.name, "service": self.service_name, "parameters": held})
        except UnusableValue as error:
            raise ListError(f"Model {self.name!r}: {error.message}", fix=error.fix) from None

    @classmethod
    def from_row(cls, row: bytes | str, functions: dict[str, Any] | None = None) -> Model:
        """The reverse of `to_row`; a function that is not among `functions` stays a `MissingFunction`."""
        held = decode_value(row)
        parameters: dict[str, Any] = {}
        for name, value in held["parameters"].items():  # a value is held as [value], a function as {"function": ...}
            is_function = isinstance(value, dict)
            parameters[name] = from_reference(value, (functions or {}).get(name)) if is_function else value[0]
        return cls(held["name"], service_name=held["service"], **parameters)

    def to_dict(self) -> dict[str, Any]:
        """The model as values: its name, its service and its parameters. A function is refused: no file can hold it."""
        if self.functions:
            named = ", ".join(self.functions)
            raise ListError(f"Model {self.name!r} has a function, {named}, which cannot be written.", fix=_IN_PROGRAM)
        return {"model": self.name, "inference_service": self.service_name, "parameters": dict(self.parameters)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Model:
        """The reverse of `to_dict`; also for what EDSL writes."""
        known = ("model", "inference_service", "parameters", "edsl_version", "edsl_class_name")
        if not isinstance(data, Mapping) or not isinstance(data.get("model"), str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"{data!r} is not a model.", fix='Write {"model": "gpt-4o", "parameters": {}}.')
        for name in data:
            if name not in known:
                raise ListError(f"A model has no {name!r}.", fix=nearest(str(name), known[:3]))
        return cls(data["model"], data.get("inference_service"), **(data.get("parameters") or {}))

    @classmethod
    def from_edsl(cls, given: Any, *, allow: str | Iterable[str] = ()) -> Model:
        """The model that EDSL holds: an object, a dict, JSON text or a file; see `Survey.from_edsl` and `Job.load`."""
        from headrace.edsl_files.from_edsl import from_edsl

        return from_edsl(cls, given, allow)

    @classmethod
    def from_file(cls, row: bytes | str, path: str, allowed: frozenset[str] = frozenset()) -> Model:
        """A model that a run file names. That is a claim: it is asked only where the user allows it."""
        model = cls.from_row(row)
        model.origin = FromFile(path, allowed)
        return model

    def __getattr__(self, name: str) -> Any:
        """A parameter by its name, `model.temperature`."""
        if (
            name in Model.__slots__ or name not in self.parameters
        ):  # a slot that is not set yet has no parameters either
            raise missing_attribute(self, name)
        return self.parameters[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.to_row() == other.to_row()

    def __hash__(self) -> int:
        return hash(self.to_row())

    def __repr__(self) -> str:
        shown = "".join(f", {name}={shown_value(value)}" for name, value in self.parameters.items())
        is_implied = self.service_name == service_of(self.name, has_address="base_url" in self.parameters)
        service = "" if is_implied else f", service_name={self.service_name!r}"
        return f"Model({self.name!r}{service}{shown})"


def address_file_of(parameters: Mapping[str, Any]) -> str | None:
    """The path that `base_url="@endpoints.txt"` names, as written; None where there is no such file."""
    given = parameters.get("base_url")
    return given[1:] if isinstance(given, str) and given.startswith("@") else None


def _one_name(name: str | None, parameters: dict[str, Any]) -> str | None:
    """The name, out of the three ways to give it."""
    given = [name, parameters.pop("model", None), parameters.pop("model_name", None)]
    names = [each for each in given if each is not None]
    if len(names) > 1:
        raise ListError(f"The model is named twice: {names[0]!r} and {names[1]!r}.", fix="Leave one out.")
    return names[0] if names else None


def _in_our_words(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters without EDSL's words for some: keys are looked for when a call needs one, whatever was asked."""
    names = {"rpm": "requests_per_minute", "tpm": "tokens_per_minute"}
    given = {names.get(name, name): value for name, value in parameters.items() if name != "skip_api_key_check"}
    if len(given) < len(parameters.keys() - {"skip_api_key_check"}):
        raise ListError("A limit of the model is given twice, once by EDSL's name.", fix="Leave one out.")
    return given


def _default_model() -> Model:
    from headrace.survey.model_text import default_model  # made with this class

    return default_model()


class MissingFunction:
    """Stands where a run file names a function that this program has not given."""

    def __init__(self, reference: str) -> None:
        self.reference = reference

    def __call__(self, *_: Any) -> Any:
        raise ListError(
            f"The run file needs the function {self.reference}, which a file cannot carry.",
            fix="Run the program that made this run file again; it goes on where it was.",
        )

    def __repr__(self) -> str:
        return f"<function {self.reference}>"


def shown_value(value: Any) -> str:
    """A function by its name: what it was made with, a partial's arguments for instance, may be secret."""
    if isinstance(value, MissingFunction) or not callable(value):
        return repr(value)
    return f"<function {function_reference(value).partition('@')[0]}>"


def to_reference(function: Any) -> dict[str, str]:
    """A function as stored: what can be compared, not called."""
    if isinstance(function, MissingFunction):
        return {_FUNCTION: function.reference}
    return {_FUNCTION: function_reference(function)}


def from_reference(stored: Any, function: Any) -> Any:
    """The function that the program has given for a stored one; None for none."""
    return MissingFunction(str(stored[_FUNCTION])) if function is None else function
