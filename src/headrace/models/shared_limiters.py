"""The limiters of all models that a controller calls: two models of one service and name share one.

The controller owns them, and follows the address files of models that have one. An executor in its process uses them
directly, a worker asks for turns over its wire, and is told addresses.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import assert_never

import msgspec

from headrace.errors import OptionError, nearest
from headrace.models.address_list import AddressList, FileNews, FollowedFile
from headrace.models.calls import endpoint_limits
from headrace.models.endpoint.call_results import EndpointStatus
from headrace.models.http_client.address_file import AddressFile
from headrace.models.limiter import Limiter, Reach
from headrace.models.model_endpoints import ModelEndpoint
from headrace.survey.model import Model
from headrace.survey.values import encode_value

_log = logging.getLogger("headrace")


def endpoint_key(model: Model) -> bytes:
    """A key that models have in common where they share their limits."""
    return encode_value([model.service_name, model.name, model.parameters.get("base_url")])


def _named(model: Model, said: str) -> str:
    return said if model.name in said else f"{model.name}: {said}"


class SharedLimiters:
    """Limiters by endpoint; `status` shows each under its model's name.

    The logger `headrace` and `on_reach` get a message when an endpoint cannot be reached, and when it can again.
    """

    def __init__(self, on_reach: Callable[[Reach, str], None] | None = None) -> None:
        self._on_reach = on_reach
        self._limiters: dict[bytes, tuple[Model, Limiter]] = {}  # as many as there are models
        self._followed: dict[bytes, FollowedFile] = {}  # of those, the ones with an address file
        self._since: dict[bytes, tuple[float, float]] = {}  # by endpoint: on the limiter's clock, and since 1970

    def limiter(self, model: Model) -> Limiter:
        key = endpoint_key(model)
        if key not in self._limiters:
            self._limiters[key] = model, Limiter(endpoint_limits(model), partial(self._tell_reach, model))
        return self._limiters[key][1]

    def addresses(self, model: Model) -> AddressList | None:
        """The addresses in the model's address file, followed from now on; None where it has no such file."""
        key = endpoint_key(model)
        if key not in self._followed and (file := AddressFile.of(model)) is not None:
            self._followed[key] = FollowedFile(file, partial(self._tell_file, model, file))
        return self._followed[key].known if key in self._followed else None

    def allow(self, interviews: int) -> None:
        """Lets each endpoint have as many calls in flight as a run has interviews, where the service bears it."""
        for _, limiter in self._limiters.values():
            limiter.allow(interviews)

    def status(self) -> list[tuple[str, EndpointStatus]]:
        return [(model.name, limiter.status()) for model, limiter in self._limiters.values()]

    def shown(self, *of: Model) -> list[ModelEndpoint]:
        """Each endpoint as people see it, or those of these models: none where a model was not called yet."""
        now_s, keys = time.monotonic(), {endpoint_key(model) for model in of}
        return [
            self._shown(each, model, limiter.status(), now_s)
            for each, (model, limiter) in self._limiters.items()
            if not keys or each in keys
        ]

    def _shown(self, key: bytes, model: Model, status: EndpointStatus, now_s: float) -> ModelEndpoint:
        since_s, since = status.since_s, None
        if since_s is not None:
            # Kept: computed anew it would differ by microseconds, or by what the clock was set by meanwhile.
            if self._since.get(key, (None, 0.0))[0] != since_s:
                self._since[key] = since_s, time.time() - (now_s - since_s)
            since = self._since[key][1]
        return ModelEndpoint.of(model.name, model.service_name, status, now_s, since)

    def reopen(self, model: Model | str | None) -> None:
        """Let calls to this model go at once, whatever held them back; None is all models."""
        key = endpoint_key(model) if isinstance(model, Model) else None
        chosen = [
            limiter
            for each, (known, limiter) in self._limiters.items()
            if model is None or each == key or known.name == model
        ]
        if not chosen and model is not None:
            name = model.name if isinstance(model, Model) else str(model)
            known = [each.name for each, _ in self._limiters.values()]
            raise OptionError(f"No call to a model {name!r} was made here.", fix=nearest(name, known))
        for limiter in chosen:
            limiter.reopen("its owner has reopened it")

    def figures(self, models: Iterable[Model]) -> bytes:
        """The figures of these models' endpoints as JSON, for the run file at the end of a run (results.stats has the
        shape): other runs of an engine have models of their own.
        """
        keys = {endpoint_key(model) for model in models}
        chosen = [(model.name, limiter.status()) for key, (model, limiter) in self._limiters.items() if key in keys]
        return msgspec.json.encode(
            [
                {
                    "model": name,
                    "calls": status.calls,
                    "tokens": status.tokens,
                    "busy": status.busy,
                    "failures": status.failures,
                    "circuit": status.circuit.value,
                    "closed_reason": status.closed_reason,
                    "key_advice": status.key_advice,
                }
                for name, status in chosen
            ]
        )

    def _tell_reach(self, model: Model, reach: Reach, said: str) -> None:
        match reach:
            case Reach.AWAY:
                what = said or f"{model.name} cannot be reached"
                words = f"{what}. It is tried again until it answers; stopping loses nothing."
                _log.warning("%s", words)
            case Reach.BACK:
                words = f"{model.name} {said}."
                _log.info("%s", words)
            case Reach.BUSY | Reach.FAILING:
                words = f"{_named(model, said).rstrip('.')}. It is asked again, more slowly."
                _log.info("%s", words)
            case Reach.CLOSED | Reach.REOPENED:
                words = _named(model, said)
                _log.info("%s", words)
            case Reach.ADDRESS_AWAY:
                words = f"{said}. Its other addresses are asked meanwhile."
                _log.warning("%s", words)
            case Reach.ADDRESS_BACK:
                words = f"{model.name} at {said} is reached again."
                _log.info("%s", words)
            case Reach.ADDRESSES_CHANGED:
                words = f"{model.name}: {said}"
                _log.info("%s", words)
            case Reach.ADDRESSES_KEPT:
                words = said
                _log.warning("%s", words)
            case _:
                assert_never(reach)
        if self._on_reach is not None:
            self._on_reach(reach, words)

    def _tell_file(self, model: Model, file: AddressFile, news: FileNews) -> None:
        reach = Reach.ADDRESSES_KEPT if news.problem else Reach.ADDRESSES_CHANGED
        self._tell_reach(model, reach, news.in_words(file.path))
        self.limiter(model).addresses_changed(news.known, news.joined)

    def release_stopped(self) -> None:
        for _, limiter in self._limiters.values():
            limiter.release_stopped()

    def close(self) -> None:
        for _, limiter in self._limiters.values():
            limiter.close()
        for followed in self._followed.values():
            followed.close()
