from headrace.agents.engine.backlog import KeyFilter


def test_a_key_filter_never_misses_a_key_it_was_given():
    keys = [number.to_bytes(16, "little") for number in range(1000)]
    filled = KeyFilter(keys[:500])
    assert not any(filled.add(key) for key in keys[:500])
    filled.add(keys[600])
    assert not filled.add(keys[600])
    assert KeyFilter([]).add(keys[1])
