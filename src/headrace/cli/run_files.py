"""Lists and removes the run files in the user's data directory, for `headrace runs`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from headrace.cli.terminal import path_text, print_json, say, showable
from headrace.display import counted
from headrace.errors import HeadraceError, LogMissing, OptionError
from headrace.results.file_facts import read_facts
from headrace.store.home import home
from headrace.store.run_file.removal import check_is_removable, disk_bytes, remove_run
from headrace.units import format_bytes

_AGES_S = (("day", 86_400), ("hour", 3600), ("minute", 60))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """A run file. `interviews` and `total` are None where it cannot be read, and `trouble` says why; where that is only
    for want of its log, it `is_log_missing`.
    """

    path: str
    size_bytes: int
    changed_at: float
    interviews: int | None = None
    total: int | None = None
    failed: int | None = None
    trouble: str | None = None
    is_log_missing: bool = False


def kept_runs() -> Iterator[KeptRun]:
    """The run files in the data directory, the latest first."""
    files = filter(Path.is_file, (home() / "runs").glob("*.run"))
    found = [(path.stat().st_mtime, path) for path in files]  # as many as a person keeps
    return (_kept(path, changed_at) for changed_at, path in sorted(found, reverse=True))


def show_runs(*, as_json: bool) -> None:
    found = list(kept_runs())
    if as_json:
        print_json([asdict(run) for run in found])
        return
    place = home() / "runs"
    if not found:
        say(f"no run files in {place}")
        return
    _print_table(found)
    say(f"{format_bytes(sum(run.size_bytes for run in found))} in {place}")


def _print_table(found: list[KeptRun]) -> None:
    from headrace.cli.rich_terminal import Terminal
    from headrace.tables import print_rows, table_width

    terminal = Terminal()
    by_path = [_row(run, run.path, terminal.encoding) for run in found]
    by_name = [_row(run, Path(run.path).name, terminal.encoding) for run in found]
    is_wide = table_width(_COLUMNS, by_path) <= terminal.width
    print_rows(terminal, _COLUMNS, by_path if is_wide else by_name, right=("size", "done"))


def remove_runs(names: list[str], *, agreed: bool, as_json: bool) -> None:
    """Removes all of these or none: each is checked before the first is removed."""
    paths = list(dict.fromkeys(map(_named, names)))
    for path in paths:
        check_is_removable(path)
    if not agreed:
        _ask(paths)
    removed = [{"path": path_text(path), "size_bytes": remove_run(path)} for path in paths]
    if as_json:
        print_json(removed)
        return
    for run in removed:
        say(f"removed {run['path']}, {format_bytes(float(run['size_bytes']))}")


_COLUMNS = ("size", "done", "age", "run file")


def _row(run: KeptRun, name: str, encoding: str) -> list[str]:
    unreadable = "log missing" if run.is_log_missing else "unreadable"
    done = unreadable if run.interviews is None else f"{run.interviews:,}/{run.total:,}"
    age = _age(time.time() - run.changed_at)
    return [format_bytes(run.size_bytes), done, age, showable(name, 500, encoding)]


def _age(age_s: float) -> str:
    for unit, length_s in _AGES_S:
        if age_s >= length_s:
            return counted(int(age_s // length_s), unit)
    return "now"


def _kept(path: Path, changed_at: float) -> KeptRun:
    size = disk_bytes(path)
    try:
        facts = read_facts(path)
    except HeadraceError as error:
        return KeptRun(
            path=path_text(path),
            size_bytes=size,
            changed_at=changed_at,
            trouble=error.message,
            is_log_missing=isinstance(error, LogMissing),
        )
    return KeptRun(
        path=path_text(path),
        size_bytes=size,
        changed_at=changed_at,
        interviews=facts.stats.interviews,
        total=facts.planned,
        failed=facts.stats.failed,
    )


def _named(name: str) -> Path:
    """The run file that `headrace runs` lists under this name, or else the path itself."""
    listed = home() / "runs" / name
    return listed if listed.exists() else Path(name)


def _ask(paths: list[Path]) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise OptionError("There is no terminal to confirm the removal at.", fix="Add --yes.")
    for path in paths:
        say(f"{format_bytes(disk_bytes(path)):>8}  {path}")
    typer.confirm("Remove for good?", abort=True)
