"""Prints the damage in a file, for `headrace verify`. Does not cover: finding it (store.run_file.run_verification)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from headrace.cli.error_messages import exit_with
from headrace.cli.rich_terminal import Terminal
from headrace.cli.terminal import own_command, path_text, print_json, say, seen_from_here, showable
from headrace.display import counted
from headrace.errors import LogDamaged, RunFileDamaged
from headrace.results.totals.totals_table import check_totals
from headrace.store.run_file.dropping import can_be_dropped, has_damaged_rows
from headrace.store.verification import Damage, Verification
from headrace.store.whole_files import verify

_LONGEST_PATH = 4_096
_WHAT_TO_DO = {
    "log": "put an undamaged copy of it back; what can be read without: headrace copy FILE NEW --without-log",
    "pages": "restore a copy; sqlite3's .recover saves what can be read",
    "plan": "restore a copy: nothing in it can be trusted without its plan",
    "counters": "restore a copy: what it took is not known; the answers can be read",
    "budgets": "give --max-cost and --max-tokens-total, or none, with its next run; the answers can be read",
    "agents": "restore a copy, or run the job again into a new file",
    "scenarios": "restore a copy, or run the job again into a new file",
    "interviews": "restore a copy, or have them run again; the others can be read",
    "finished": "restore a copy: which interviews are finished is not known",
    "totals": "restore a copy, or start over: totals of rows that are not kept cannot be made up for",
    "details": "restore a copy, or have them run again; their answers can be read, prompts and raw responses cannot",
    "failures": "restore a copy, or have these interviews run again",
    "questions": "restore a copy, or put it right as below: filters may leave rows out until then",
    "runs": "restore a copy: how long runs took, and how they ended, is not known; the answers can be read",
    "embedded files": "restore a copy; where the file still lies at its path, run it with embed=True into a new file",
    "answers in flight": "restore a copy, or put it right as below: these questions are then asked again",
}


def show_verified(path: Path, *, as_json: bool) -> None:
    """Prints the damage that was found; exits with 1 where there is any."""
    found = _verified(path)
    findings = list(found.findings.values())
    with exit_with(1 if findings else 0):
        if as_json:
            print_json(
                {
                    "path": path_text(path),
                    "is_whole": not findings,
                    "rows": found.rows,
                    "unchecked": found.unchecked,
                    "run_again": found.run_again.ranges,
                    "findings": [asdict(finding) for finding in findings],
                }
            )
        else:
            _print(found, findings)


def _verified(path: Path) -> Verification:
    try:
        return verify(path, check_totals)
    except RunFileDamaged as error:  # so much so that it cannot even be opened
        found = Verification(path)
        found.note("log" if isinstance(error, LogDamaged) else "file", error.message)
        return found


def _print(found: Verification, findings: list[Damage]) -> None:
    rows = counted(found.rows, "row")
    if found.unchecked:
        rows += f", {found.unchecked:,} of them without a checksum: readable, not checked"
    terminal = Terminal()
    path = showable(path_text(found.path), _LONGEST_PATH, terminal.encoding)
    say(f"{path}: {'damaged' if findings else 'no damage found'} ({rows})")
    for finding in findings:
        say(f"  {finding.kind}: {finding.count:,}{_places(finding)}: {showable(finding.what, 300, terminal.encoding)}")
        say(f"    {_WHAT_TO_DO.get(finding.kind, 'restore a copy')}")
    if has_damaged_rows(found) and can_be_dropped(found):
        _print_way_on(found)


def _print_way_on(found: Verification) -> None:
    path, again = seen_from_here(found.path), found.run_again
    if again.count:
        say(f"to run again: {counted(again.count, 'interview')} ({again.text()})")
    say(f"put it right, with the file as it is kept beside: {own_command()} compact {path} --drop-damaged")
    say(f"then run what is missing: {own_command()} resume {path}")


def _places(finding: Damage) -> str:
    if not finding.places:
        return ""
    more = ", ..." if finding.count > len(finding.places) else ""
    return f" (at {', '.join(map(str, finding.places))}{more})"
