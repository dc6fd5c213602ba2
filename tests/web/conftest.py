"""What every test of the page gets: patience with processes that are asked how they stand."""

import pytest

from headrace.store.holder_socket import silent_holders


@pytest.fixture(autouse=True)
def patient_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a process may need longer than half a second for its answer; the page would then show it as one
    that does not answer (tests/web/test_silent_holders.py).
    """
    monkeypatch.setattr(silent_holders, "_MOST_PATIENCE_S", 15.0)
    monkeypatch.setattr(silent_holders, "_LEAST_PATIENCE_S", 15.0)
