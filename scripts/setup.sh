# Sourced by the other scripts, with $root set: `ensure_venv runtime` or `ensure_venv dev`; `ensure_chromium`.
# Covers: noticing that nothing changed, without starting Python; choosing a Python; a browser for the page's tests.
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

has_chromium() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null
}

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::http::Timeout=30 "$@" \
        </dev/null >/dev/null 2>&1
}

apt_chromium() {
    apt install -y --no-install-recommends chromium
}

# Debian's Chromium where root may install it; 100 MB to fetch and 460 MB on disk, so only for tests that need it.
ensure_chromium() {
    has_chromium && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing Chromium for the page's tests (once) ..." >&2
        apt_chromium || { apt update && apt_chromium; } || true
    fi
    has_chromium || echo "no Chromium: the page's tests in a browser do not run; apt-get install chromium" >&2
}
