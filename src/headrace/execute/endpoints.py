"""The endpoints of all models that one process calls: two models of one service and name share its limits.

Owned by the controller, and handed to executors that run in its process.
"""

from __future__ import annotations

import msgspec

from headrace.execute.calls import endpoint_limits
from headrace.execute.gate import Gate
from headrace.schedule.outcomes import EndpointStatus
from headrace.survey.models import Model
from headrace.survey.values import encode_value


def endpoint_key(model: Model) -> bytes:
    """The same for models that share their limits."""
    return encode_value([model.service_name, model.name, model.parameters.get("base_url")])


class Endpoints:
    """Gates by endpoint; `status` shows each under its model's name."""

    def __init__(self) -> None:
        self._gates: dict[bytes, tuple[str, Gate]] = {}  # as many as there are models

    def gate(self, model: Model) -> Gate:
        key = endpoint_key(model)
        if key not in self._gates:
            self._gates[key] = model.name, Gate(endpoint_limits(model))
        return self._gates[key][1]

    def allow(self, interviews: int) -> None:
        """A run has so many in flight: none of them is to wait for a place where the service has room."""
        for _, gate in self._gates.values():
            gate.allow(interviews)

    def status(self) -> list[tuple[str, EndpointStatus]]:
        return [(name, gate.status()) for name, gate in self._gates.values()]

    def figures(self) -> bytes:
        """What is kept of them when a run has ended, as JSON (results.stats has the shape)."""
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
                }
                for name, status in self.status()
            ]
        )

    def release_stopped(self) -> None:
        for _, gate in self._gates.values():
            gate.release_stopped()

    def close(self) -> None:
        for _, gate in self._gates.values():
            gate.close()
