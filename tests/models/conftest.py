from collections.abc import Iterator

import pytest

from tests.models.server import HostileServer


@pytest.fixture(scope="session")
def _running_server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


@pytest.fixture
def server(_running_server: HostileServer) -> HostileServer:
    _running_server.behave("ok")
    return _running_server
