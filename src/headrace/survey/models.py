"""Which model answers: its name, its service and its parameters. A description; reaching it is providers/."""

from __future__ import annotations

from typing import Any

from headrace.errors import ListError
from headrace.survey.functions import function_reference
from headrace.survey.values import UnusableValue, decode_value, encode_value

_FUNCTION = "function"
_ABOUT_CALLING = frozenset(
    {
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


class Model:
    """`Model("test", canned_response="Good")`: a model by name, with whatever parameters its service knows."""

    __slots__ = ("name", "parameters", "service_name")

    def __init__(self, name: str, *, service_name: str | None = None, **parameters: Any) -> None:
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"{name!r} is not the name of a model.", fix='Write it like Model("test").')
        self.name = name
        self.service_name = service_name or name
        self.parameters: dict[str, Any] = parameters

    @property
    def functions(self) -> dict[str, Any]:
        """The parameters that are functions; they do not travel, they are looked up where the program runs."""
        return {name: value for name, value in self.parameters.items() if callable(value)}

    def identity_row(self) -> bytes:
        """What makes it another model: all but its price and how often and how patiently it is called."""
        given = {name: value for name, value in self.parameters.items() if name not in _ABOUT_CALLING}
        return Model(self.name, service_name=self.service_name, **given).to_row()

    def to_row(self) -> bytes:
        """The model as stored. A function is stored as a reference that can be compared, not called."""
        given = sorted(self.parameters.items())  # the order they were written in means nothing
        held = {name: _reference(value) if callable(value) else [value] for name, value in given}
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
            parameters[name] = (functions or {}).get(name) if is_function else value[0]
            if is_function and parameters[name] is None:
                parameters[name] = MissingFunction(str(value[_FUNCTION]))  # pyright: ignore[reportUnknownArgumentType]
        return cls(held["name"], service_name=held["service"], **parameters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.to_row() == other.to_row()

    def __hash__(self) -> int:
        return hash(self.to_row())

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self.parameters.items())
        return f"Model({self.name!r}{shown})"


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


def _reference(function: Any) -> dict[str, str]:
    if isinstance(function, MissingFunction):
        return {_FUNCTION: function.reference}
    return {_FUNCTION: function_reference(function)}
