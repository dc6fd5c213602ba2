# Sourced by the other scripts, with $root set: `ensure_venv runtime` or `ensure_venv dev`.
# Covers: noticing that nothing changed, without starting Python; choosing a Python.
# Does not cover: making the environment (scripts/setup.py).

# Where the machine forbids byte code, every start would compile this tree anew.
unset PYTHONDONTWRITEBYTECODE

same() {
    [ -f "$1" ] && [ "$(cat "$1")" = "$(cat "$2")" ]
}

venv_is_ready() {
    made=$root/.venv/made-from
    [ -f "$made/place" ] && [ ! -e "$made/unfinished" ] || return 1
    # The inode tells when the Python underneath was replaced, the path when the tree was copied.
    [ "$(cat "$made/place")" = "$(ls -iL "$root/.venv/bin/python" 2>/dev/null)" ] || return 1
    [ -z "${PYTHON:-}" ] || [ "$(cat "$made/python")" = "$PYTHON" ] || return 1
    same "$made/requirements.lock" "$root/requirements.lock" || return 1
    same "$made/pyproject.toml" "$root/pyproject.toml" || return 1
    [ "$1" = runtime ] || same "$made/requirements-dev.lock" "$root/requirements-dev.lock"
}

find_python() {
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            return
        fi
    done
    echo "Headrace needs Python 3.11 or newer and found none. Install one, or name it: PYTHON=/path/to/python3 $0" >&2
    exit 1
}

ensure_venv() {
    venv_is_ready "$1" && return
    find_python
    "$candidate" "$root/scripts/setup.py" "$1"
}
