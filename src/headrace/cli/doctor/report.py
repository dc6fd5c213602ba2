"""The doctor's findings, for people and as JSON. Does not cover: finding them (installed, machine).

The standard library alone prints them: an installation without rich or SQLite gets its report too.
"""

from __future__ import annotations

import json
import shutil
import textwrap

from headrace.cli.doctor import installed
from headrace.cli.doctor.diagnosis import Diagnosis, Health
from headrace.cli.error_messages import exit_with
from headrace.display import visible

_MARGIN = max(len(state.value) for state in Health) + 3


def show_report(*, as_json: bool, with_cluster: bool = False) -> None:
    """Prints the report; exits with 1 where something is broken that Headrace needs."""
    report = _report()
    if with_cluster:
        from headrace.cli.doctor import cluster_nodes

        report["Cluster"] = list(cluster_nodes.nodes())
    broken = [f for findings in report.values() for f in findings if f.state is Health.BROKEN]
    with exit_with(1 if broken else 0):
        if as_json:
            print(json.dumps({"broken": [finding.name for finding in broken], **_by_name(report)}, indent=2))
        else:
            _print(report)
            print(f"{len(broken)} broken" if broken else "nothing is broken")


def _report() -> dict[str, list[Diagnosis]]:
    report = {
        "Python": list(installed.python()),
        "Core libraries": list(installed.core_libraries()),
        "Extras": list(installed.extras()),
        "Models": list(installed.keys()),
    }
    try:
        from headrace.cli.doctor import machine
    except (ImportError, OSError):  # it needs some core libraries, and those that are broken stand above
        return report
    return {
        **report,
        "Memory": list(machine.memory()),
        "Limits": list(machine.limits()),
        "Run files": list(machine.run_files()),
    }


def _by_name(report: dict[str, list[Diagnosis]]) -> dict[str, object]:
    return {
        title.lower().replace(" ", "_"): {
            finding.name: {"state": finding.state.value, "found": finding.found, "fix": finding.fix}
            for finding in findings
        }
        for title, findings in report.items()
    }


def _print(report: dict[str, list[Diagnosis]]) -> None:
    room = max(10, shutil.get_terminal_size().columns - _MARGIN)
    for title, findings in report.items():
        print(title)
        for finding in findings:
            first, *more = _lines(finding, room)
            print(f"  {finding.state.value:<{_MARGIN - 2}}{first}")
            for line in more:
                print(f"{'':<{_MARGIN}}{line}")


def _lines(finding: Diagnosis, room: int) -> list[str]:
    """A finding as lines of text. Paths and commands stay whole, for copying."""
    found = visible(f"{finding.name}: {finding.found}")  # libraries, paths and variables may be called anything
    lines = textwrap.wrap(found, room, break_long_words=False, break_on_hyphens=False)
    return [*lines, visible(finding.fix)] if finding.fix else lines
