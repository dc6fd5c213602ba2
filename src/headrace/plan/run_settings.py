"""The parameters of `run` and its kin, as type checkers and as `help(Job.run)` show them.

Covers: their names, types and defaults. Does not cover: checking them (headrace.limits.RunOptions), or what EDSL's mean
(headrace.edsl_names).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from headrace.edsl_names import EdslParameters
from headrace.limits import Lifted, ProgressBar, RunOptions
from headrace.ray_option import Ray
from headrace.stand_ins import Cache

if TYPE_CHECKING:
    from headrace.results.totals.aggregator import Aggregator

_Method = TypeVar("_Method", bound=Callable[..., Any])


class RunSettings(EdslParameters, total=False):
    """The options that `run`, `run_async`, `stream` and `astream` share; limits.RunOptions checks and explains them."""

    concurrency: int | Lifted | None
    workers: int | Lifted | None
    n: int | None
    limit: int | None
    sample: int | None
    seed: int
    memory: str | int | None
    max_cost: float | Lifted | None
    max_tokens_total: int | Lifted | None
    cache: bool | Cache | None
    fresh: bool
    extend: bool
    retry_failed: bool
    stop_on_exception: bool
    embed: bool
    progress_bar: ProgressBar
    keep: Literal["everything", "answers", "nothing"] | None
    aggregate: Mapping[str, str] | Aggregator | None
    group_by: str | Sequence[str] | None
    telemetry: bool
    view: bool
    executor: Ray | None


def with_run_parameters(method: _Method) -> _Method:
    """Let a method's signature show the parameters that it takes as RunSettings, each with its default."""
    written = signature(method)
    defaults = dict(zip(RunOptions.__struct_fields__, RunOptions.__struct_defaults__, strict=True))
    defaults |= dict.fromkeys(EdslParameters.__annotations__)
    own = [each for each in written.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    types = RunSettings.__annotations__
    shown = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=_written(types[name]))
        for name, default in defaults.items()
    ]
    method.__signature__ = written.replace(parameters=[*own, *shown])  # pyright: ignore[reportFunctionMemberAccess]
    return method


def _written(annotation: Any) -> Any:
    """A type as it is written above; help shows a ForwardRef otherwise."""
    return getattr(annotation, "__forward_arg__", annotation)
