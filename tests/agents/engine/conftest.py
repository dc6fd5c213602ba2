"""No test of an engine leaves a temporary file behind."""

from tests.temporary_files import no_temporary_file_left

__all__ = ["no_temporary_file_left"]
