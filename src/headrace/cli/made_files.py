"""Prints what `headrace copy`, `merge` and `compact` did. Does not cover: doing it (store.whole_files)."""

from __future__ import annotations

from pathlib import Path

from headrace.cli.terminal import own_command, path_text, print_json, say, seen_from_here
from headrace.display import counted
from headrace.results.file_facts import read_facts
from headrace.store.engine_file.engine_overview import is_engine_file
from headrace.store.run_file.merging.merging import merge_run_files
from headrace.store.whole_files import compact_file, copy_file
from headrace.units import format_bytes


def copy_run(path: Path, target: Path, *, without_log: bool) -> None:
    path, target = path.expanduser().resolve(), target.expanduser().absolute()
    copy_file(path, target, without_log=without_log)
    say(f"copied {path_text(path)} to {path_text(target)}, {format_bytes(target.stat().st_size)}")
    if without_log and not is_engine_file(target):
        facts = read_facts(target)
        say(f"it holds {facts.stats.interviews:,} of {counted(facts.planned, 'interview')}")


def merge_runs(paths: list[Path], target: Path, *, as_json: bool) -> None:
    sources, target = [path.expanduser() for path in paths], target.expanduser().absolute()
    made = merge_run_files(sources, target)
    if as_json:
        print_json({"path": path_text(target), **made._asdict()})
        return
    shown = seen_from_here(target)
    say(f"merged {counted(len(paths), 'run file')} into {shown}: {made.interviews:,} of {made.planned:,} interviews")
    if made.in_several:
        better = f", but for {made.replaced:,} that had failed there" if made.replaced else ""
        were, kept = ("was", "that of the first is") if made.in_several == 1 else ("were", "those of the first are")
        say(f"{made.in_several:,} {were} in several files: {kept} kept{better}")
    if made.interviews < made.planned:
        say(f"go on: {own_command()} resume {shown}")


def compact_run(path: Path, *, drop_damaged: bool) -> None:
    done = compact_file(path, drop_damaged_rows=drop_damaged)
    shown, size = seen_from_here(path), format_bytes(done.after_bytes)
    if done.kept is not None:
        say(f"dropped {counted(done.dropped, 'damaged interview')} from {shown}, now {size}")
        say(f"the file as it was: {seen_from_here(done.kept)}")
        say(f"ask them again: {own_command()} resume {shown}")
    elif done.after_bytes < done.before_bytes:
        say(f"compacted {shown}: {size}, before {format_bytes(done.before_bytes)}")
    else:
        say(f"{shown} is as small as it gets: {size}")
