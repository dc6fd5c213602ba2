"""Asks the user before a run file from elsewhere is run: what it would contact, with which keys, and how far.

Covers: showing and asking at a terminal, and the command that says yes where there is none.
Does not cover: what has to be confirmed (interviews.permissions).
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import typer
from msgspec import structs

from headrace.cli.status.spending_text import budgets_text
from headrace.cli.terminal import own_command, say, seen_from_here, showable
from headrace.display import counted
from headrace.errors import NotConfirmed
from headrace.interviews.permissions import Permissions
from headrace.limits import RunOptions
from headrace.models.contacts import Contact, described
from headrace.plan.job import Job
from headrace.results.results import Results
from headrace.survey.asked_question import asked_questions

_LONGEST = 500
_MOST_SHOWN = 30


def confirmed_job(path: Path, allow: list[str], options: RunOptions) -> tuple[Job, RunOptions]:
    """The job in a run file and its options, once this user has confirmed what they do. It contacts no service."""
    job = Job.open(path, allow=allow)
    permissions = Permissions.of(job, path.expanduser().resolve(), options)
    is_asked = sys.stdin.isatty() and sys.stderr.isatty()
    if permissions.unconfirmed or permissions.loosened:
        shown = _lines(job, path, permissions)
        if not is_asked or len(shown) > _MOST_SHOWN:  # what scrolls by has not been seen
            raise _refusal(path, permissions, shown)
        _ask(permissions, shown)
        named = [name for contact in permissions.unconfirmed for name in contact.to_allow]
        job = Job.open(path, allow=[*allow, *named])
        if permissions.budgets.workers and options.workers is None:
            options = structs.replace(options, workers=permissions.budgets.workers)
        options = permissions.accepting(options)
    if permissions.asks_for_memory and is_asked:
        written = permissions.budgets.memory
        if typer.confirm(_shown(f"Let it use memory {written}, which is more than the default here?"), err=True):
            options = structs.replace(options, memory=written)
    return job, options


def _lines(job: Job, path: Path, permissions: Permissions) -> list[str]:
    with Results.open(path) as results:
        stats = results.stats()
    left = max(0, permissions.confirmed.interviews - stats.interviews)
    # Of those that failed, the ones that an outside cause made fail are asked again; with --retry-failed all are.
    up_to, left = ("up to ", left + stats.failed) if stats.failed else ("", left)
    asked = sum(not asked.is_derived for asked in asked_questions(job.survey))
    contacts = dict.fromkeys(map(described, permissions.unconfirmed))
    budgets = budgets_text(permissions.budgets, stats) or "none"
    looser = [f"looser than you confirmed here: {permissions.loosened_words}"] if permissions.loosened else []
    return [
        *map(_shown, contacts),
        _shown(f"{up_to}{counted(left * asked, 'call')} left; budgets: {budgets}"),
        *map(_shown, looser),
        *(_shown(f"priced by the file: {price}") for price in permissions.confirmed.prices),
    ]


def _shown(text: str) -> str:
    """A text that may quote the file, on one line: nothing in it hides a question or writes one of its own."""
    return showable(text, _LONGEST, sys.stderr.encoding)


def _ask(permissions: Permissions, shown: list[str]) -> None:
    say(f"{_heading(permissions.path, permissions)} It would ask:", on_error=True)
    for line in shown:
        say(f"  {line}", on_error=True)
    if permissions.loosened:
        say("A yes confirms the looser limits for this job, also for later runs.", on_error=True)
    typer.confirm("Run it?", abort=True, err=True)
    for contact in dict.fromkeys(permissions.unconfirmed):
        if not contact.has_usual_key:
            _ask_for_key(contact)


def _heading(path: Path, permissions: Permissions) -> str:
    if permissions.loosened:  # so this user has confirmed the job
        return f"{seen_from_here(path)} has looser limits than you confirmed for this job here."
    return f"{seen_from_here(path)} was not run here before, or was changed since."


def _ask_for_key(contact: Contact) -> None:
    """Asks for the variable's name: people type yes without reading, and this variable may hold any other secret."""
    asked = _shown(f"To send the value of {contact.key} to {contact.address}, type its name")
    typed = typer.prompt(asked, err=True)
    if typed.strip() != contact.key:
        raise typer.Abort


def _refusal(path: Path, permissions: Permissions, shown: list[str]) -> NotConfirmed:
    allow = list(dict.fromkeys(name for contact in permissions.unconfirmed for name in contact.to_allow))
    words = "".join(f" --allow {shlex.quote(name)}" for name in allow) + permissions.to_give.command
    return NotConfirmed(
        f"{_heading(path, permissions)} It would ask: {'; '.join(shown)}.",
        path=path,
        allow=allow,
        fix=f"If you trust it: {own_command()} resume {seen_from_here(path)}{words}",
    )
