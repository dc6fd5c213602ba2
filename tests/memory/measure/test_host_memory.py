from pathlib import Path

import pytest

from headrace.memory.measure import host_memory


def test_file_cache_of_a_container_is_not_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, text in (("max", "2000000000"), ("current", "1900000000"), ("stat", "anon 5\ninactive_file 1500000000")):
        (tmp_path / f"memory.{name}").write_text(text)
    monkeypatch.setattr(host_memory, "own_groups", lambda: [tmp_path])
    assert host_memory.available_bytes() == 1_600_000_000
    assert host_memory.total_bytes() == 2_000_000_000
