"""Engine files as tests look into them from outside."""

from pathlib import Path

import apsw


def warden_of(path: Path) -> int:
    reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return reader.execute("SELECT value FROM meta WHERE key = 'warden'").get
    finally:
        reader.close()
