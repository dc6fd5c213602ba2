"""No test of an engine leaves a temporary file behind. Also: fixtures for runs that wait."""

from tests.agents.engine.waiting_engines import isolation, server, small_warden
from tests.temporary_files import no_temporary_file_left

__all__ = ["isolation", "no_temporary_file_left", "server", "small_warden"]
