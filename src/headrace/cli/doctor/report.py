"""The doctor's findings, for people and as JSON. Does not cover: finding them (installed, host)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable

from headrace.cli.doctor import host, installed
from headrace.cli.doctor.finding import Finding, State
from headrace.cli.terminal import Terminal, print_json

_SECTIONS: dict[str, Callable[[], Iterable[Finding]]] = {
    "Python": installed.python,
    "Core libraries": installed.core_libraries,
    "Extras": installed.extras,
    "Models": installed.keys,
    "Memory": host.memory,
    "Limits": host.limits,
    "Run files": host.run_files,
}
_STYLES = {
    State.OK: "green",
    State.NONE: "dim",
    State.UNPROVEN: "yellow",
    State.CARE: "yellow",
    State.BROKEN: "bold red",
}
_MARGIN = max(len(state.value) for state in State) + 3


def show_report(*, as_json: bool) -> bool:
    """Say how things are; tells whether something is broken that Headrace needs."""
    report = {title: list(find()) for title, find in _SECTIONS.items()}
    broken = [f for findings in report.values() for f in findings if f.state is State.BROKEN]
    if as_json:
        print_json({"broken": [finding.name for finding in broken], **_by_name(report)})
    else:
        _print(Terminal(), report, broken)
    return bool(broken)


def _by_name(report: dict[str, list[Finding]]) -> dict[str, object]:
    return {
        title.lower().replace(" ", "_"): {
            finding.name: {"state": finding.state.value, "found": finding.found, "fix": finding.fix}
            for finding in findings
        }
        for title, findings in report.items()
    }


def _print(terminal: Terminal, report: dict[str, list[Finding]], broken: list[Finding]) -> None:
    for title, findings in report.items():
        terminal.print(title, style="bold")
        for finding in findings:
            _print_finding(terminal, finding)
    verdict = f"{len(broken)} broken: see above" if broken else "nothing is broken"
    terminal.print(verdict, style="bold red" if broken else "bold green")


def _print_finding(terminal: Terminal, finding: Finding) -> None:
    margin, room = " " * _MARGIN, max(10, terminal.width - _MARGIN)
    # Paths are kept whole, for copying: the terminal wraps what is longer than it.
    first, *more = textwrap.wrap(
        f"{finding.name}: {finding.found}", room, break_long_words=False, break_on_hyphens=False
    ) or [finding.name]
    terminal.print(f"  {finding.state.value:<{_MARGIN - 2}}", style=_STYLES[finding.state], end="")
    terminal.say(first)
    for line in more:
        terminal.say(f"{margin}{line}")
    if finding.fix:
        terminal.say(f"{margin}{finding.fix}")
