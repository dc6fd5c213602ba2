"""EDSL's words that mean something else here, or nothing: each is taken as its meaning here, or said once to have none.

Covers: the parameters of EDSL's `run`, and the warning. Does not cover: EDSL's classes and verbs that belong to its
service (headrace.stand_ins), or names that nobody knows, which are errors.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

from headrace.errors import HeadraceWarning, OptionError

SAME_PARAMETERS = ("n", "progress_bar", "stop_on_exception", "cache", "fresh")
RENAMED_PARAMETERS = {
    "memory_threshold": "memory",
    "max_concurrency": "concurrency",
    "raise_validation_errors": "stop_on_exception",
}


class EdslParameters(TypedDict, total=False):
    """The parameters of EDSL's `run` that `Job.run` takes beside its own."""

    memory_threshold: str | int | None
    max_concurrency: int | None
    raise_validation_errors: bool | None
    alert_on_completion_config: Any
    background: bool | None
    bucket_collection: Any
    check_api_keys: bool | None
    disable_remote_cache: bool | None
    disable_remote_inference: bool | None
    expected_parrot_api_key: str | None
    job_uuid: str | None
    jobs_runner_status: Any
    key_lookup: Any
    new_format: bool | None
    offload_execution: bool | None
    print_exceptions: bool | None
    remote_cache_description: str | None
    remote_inference_description: str | None
    remote_inference_results_visibility: str | None
    results_description: str | None
    skip_retry: bool | None
    task_timeout: int | None
    use_api_proxy: bool | None
    use_remote_inference_endpoint: bool | None
    verbose: bool | None


class WithoutEffect(NamedTuple):
    """A parameter without an effect here. `always` is the value that describes what Headrace does: it needs no warning.

    None stands for "not given", as it does in EDSL.
    """

    always: bool | None
    here: str


_NO_SERVICE = "There is no hosted service behind a run."
PARAMETERS_WITHOUT_EFFECT: dict[str, WithoutEffect] = {
    "alert_on_completion_config": WithoutEffect(None, _NO_SERVICE + " Do it where run() returns."),
    "background": WithoutEffect(
        False, "Use run_async(), an Engine, or the command: headrace run ... & headrace status."
    ),
    "bucket_collection": WithoutEffect(None, "Limits belong to a model: Model(..., requests_per_minute=)."),
    "check_api_keys": WithoutEffect(None, "A model whose key is refused stops alone, at its first call."),
    "disable_remote_cache": WithoutEffect(True, "The response cache is a file on this machine."),
    "disable_remote_inference": WithoutEffect(True, "Everything runs on this machine."),
    "expected_parrot_api_key": WithoutEffect(None, _NO_SERVICE),
    "job_uuid": WithoutEffect(None, "A job is known by its run file and its plan."),
    "jobs_runner_status": WithoutEffect(None, "headrace status shows a run from another terminal."),
    "key_lookup": WithoutEffect(None, "Keys come from the environment, or from Model(..., api_key=function)."),
    "new_format": WithoutEffect(None, _NO_SERVICE),
    "offload_execution": WithoutEffect(False, "Everything runs on this machine."),
    "print_exceptions": WithoutEffect(False, "results.failed() lists failures with their causes."),
    "remote_cache_description": WithoutEffect(None, "The response cache is a file on this machine."),
    "remote_inference_description": WithoutEffect(None, _NO_SERVICE),
    "remote_inference_results_visibility": WithoutEffect(None, "Results are in the run file, and nowhere else."),
    "results_description": WithoutEffect(None, "Results are in the run file, and nowhere else."),
    "skip_retry": WithoutEffect(None, "An answer that is not valid is asked for again, twice."),
    "task_timeout": WithoutEffect(None, "Give the model one: Model(..., timeout_s=)."),
    "use_api_proxy": WithoutEffect(False, "A model's service is called directly."),
    "use_remote_inference_endpoint": WithoutEffect(False, "Everything runs on this machine."),
    "verbose": WithoutEffect(False, 'progress_bar="log" writes a line a minute.'),
}


def in_our_words(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run with EDSL's parameters taken out: each as its meaning here, or with one warning."""
    ours = {name: value for name, value in settings.items() if name not in EDSL_ONLY}
    for name, value in settings.items():
        if name in RENAMED_PARAMETERS:
            _take(ours, RENAMED_PARAMETERS[name], name, value)
        elif name in PARAMETERS_WITHOUT_EFFECT:
            meant = PARAMETERS_WITHOUT_EFFECT[name]
            if value is not None and value is not meant.always:
                warn_once(f"{name}= has no effect in Headrace. {meant.here}")
    return ours


EDSL_ONLY = frozenset({*RENAMED_PARAMETERS, *PARAMETERS_WITHOUT_EFFECT})
_said: set[str] = set()


def warn_once(text: str) -> None:
    """Warn with this text, once in this process; `warnings` itself counts once per line of the program."""
    if text not in _said:
        _said.add(text)
        warn(HeadraceWarning(text))


def warn(warning: HeadraceWarning) -> None:
    """Warn at the program's own line."""
    warnings.warn(warning, stacklevel=_level_outside())


def _level_outside() -> int:
    """The number of frames from `warn` to the program's own line, which the warning should name."""
    frame, level = sys._getframe(2), 2  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "headrace":
        frame, level = frame.f_back, level + 1
    return level


def _take(ours: dict[str, Any], name: str, written: str, value: Any) -> None:
    """Give a renamed parameter its own name; None and False are what it is without it."""
    if value is None or value is False:
        return
    if ours.get(name) not in (None, False, value):
        raise OptionError(f"{written}= and {name}= are two names for one option.", fix=f"Give {name}= alone.")
    ours[name] = value
