"""Every error Headrace raises. Each says what happened, where, and what to do next, and carries its data.

    HeadraceError
    ├── InvalidInput                 the caller's mistake, found before anything ran
    │   ├── SurveyError              a question, a survey or a rule that cannot be asked
    │   ├── ExpressionError          a rule or filter that is not in the language
    │   ├── ListError                agents, scenarios or models that cannot be read
    │   ├── EdslFileError            a file or object of EDSL that cannot be read, or cannot be run here
    │   ├── OptionError              a run option that cannot be used
    │   ├── NotInHeadrace            a part of EDSL that belongs to its service or to another design
    │   ├── TaskError                a function that cannot be an agent run
    │   └── StepRepeated             a step's name was used twice in one run
    ├── RunFileError                 the file on disk is not what is needed
    │   ├── NotARunFile              some other file
    │   ├── RunFileTooNew            written by a newer Headrace
    │   ├── RunFileBusy              another process is writing it
    │   ├── NotRunning               no process is writing it, so there is nothing to steer
    │   ├── NotSteerable             the process that writes it cannot be asked
    │   ├── RunFileDamaged           it cannot be read back
    │   │   └── LogDamaged           rows that are in its log alone cannot be; the file itself is whole
    │   ├── NotConfirmed             it names services, keys, files or limits that this user has not confirmed
    │   ├── RunFileGone              it was moved, removed or replaced while it was being written
    │   ├── LogMissing               its last rows are in a log that is not beside it any more
    │   └── PlanMismatch             it belongs to another job
    ├── StorageFull                  no room to journal; everything journaled so far is safe
    ├── BudgetSpent                  max_cost or max_tokens_total is reached; resumable
    ├── BudgetTooSmall               the memory budget cannot hold even one interview or run
    ├── QueryTimeout                 reading results took longer than its timeout_s
    ├── QueryTooLarge                an SQL query needs more memory than one may take
    ├── MissingExtra                 an optional package that this call needs is not installed
    ├── InvalidAnswer                a model's answer that its question does not accept
    ├── ProviderError                a model could not be reached or refused
    │   ├── ProviderUnavailable      may succeed later: a fault of the service, a reply that makes no sense
    │   │   ├── ProviderBusy         the service asks for fewer calls
    │   │   ├── ProviderTimeout      no whole reply in time
    │   │   └── NetworkAway          the service was never reached; such a call costs no attempt
    │   └── ProviderRefused          this call will not succeed by trying again
    │       ├── FileUnusable         a file in its prompt cannot be sent: it changed, or the model takes no such file
    │       └── ModelUnusable        no call to this model will until its key, name, address or quota is mended
    ├── InterviewFailed              stop_on_exception=True met a failed interview
    ├── QueueFull                    too many agent runs wait at this priority
    ├── CircuitOpen                  this kind of agent run fails: not accepted until a probe succeeds
    ├── CommandFailed                a program that an agent ran met a limit
    ├── EngineClosed                 the engine was left; what is unfinished goes on when it is opened again
    └── RunFailed                    an agent run ended without a result
        ├── RunCancelled             by its owner
        └── RunUndecided             a side effect has started and may or may not have happened; not ended
    KeyboardInterrupt
    └── Interrupted                  stopped by the user; resumable. Not an Exception: nothing should swallow a Ctrl-C
    UserWarning
    └── HeadraceWarning              said once: what was written has no effect here, or another one than elsewhere
        └── NotCarriedOver           what an EDSL file or object holds that has no counterpart here

Does not cover: failures inside one interview that become data. Those are recorded (survey.record).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Self

from headrace.display import counted, visible
from headrace.installing import install_command

_MOST_DIFFERENCES = 4
_LONGEST = 20_000  # letters of a message; tracebacks of runs are shorter
_LONGEST_NAME = 200  # that is looked for among known ones


class Spelled(str):
    """A message for programs that also has its wording for the command, as `command`: there, options are flags."""

    __slots__ = ("command",)
    command: str

    def __new__(cls, program: str, *, command: str) -> Self:
        made = super().__new__(cls, program)
        made.command = command
        return made


def spelled(text: str, **options: object) -> Spelled:
    """A text that names options of a run: `{memory}` in it is `memory="2GB"` to programs and `--memory 2GB` to the
    command, `{fresh}` of True is `fresh=True` and `--fresh`, and an option of None is its name alone.
    """
    program = command = text
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        written = "" if value is None else f'"{value}"' if isinstance(value, str) else repr(value)
        program = program.replace(f"{{{name}}}", f"{name}={written}")
        command = command.replace(f"{{{name}}}", flag if value is None or value is True else f"{flag} {value}")
    return Spelled(program, command=command)


class HeadraceError(Exception):
    """The root: catch this to catch everything Headrace raises on purpose.

    A message may quote a service, a model or a file, and mostly ends at a terminal: nothing in it steers one.
    `at_command` is what the command says: a message or a fix that is Spelled has other words there.
    """

    def __init__(self, message: str, *, fix: str = "") -> None:
        self.message = _shown(str(message))
        self.fix = _shown(str(fix))
        self.at_command = f"{_shown(at_command(message))} {_shown(at_command(fix))}".rstrip()
        super().__init__(f"{self.message} {self.fix}".rstrip())


class HeadraceWarning(UserWarning):
    """What a program wrote has no effect here, or another one than the reader may expect. It steers no terminal."""

    def __init__(self, message: str) -> None:
        super().__init__(visible(str(message)))


def _shown(text: str) -> str:
    """The text made safe for a terminal, and cut in the middle: a name in a file may have megabytes."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    return visible(text)


def at_command(text: str) -> str:
    """The command's wording of a text that has one."""
    return text.command if isinstance(text, Spelled) else text


class NotCarriedOver(HeadraceWarning):
    """`notes` are the parts of an EDSL file or object that have no counterpart here, each in words."""

    def __init__(self, message: str, *, notes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.notes = notes


class InvalidInput(HeadraceError):
    pass


class SurveyError(InvalidInput):
    pass


class ExpressionError(InvalidInput):
    def __init__(self, message: str, *, source: str, fix: str) -> None:
        super().__init__(f"{message} In: {source[:200]}", fix=fix)
        self.source = source


class ListError(InvalidInput):
    pass


class EdslFileError(InvalidInput):
    pass


class OptionError(InvalidInput):
    pass


class NotInHeadrace(InvalidInput):
    pass


class RunFileError(HeadraceError):
    def __init__(self, message: str, *, path: Path, fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.path = path


RESTORE = "Restore a copy of the file; headrace verify says what of this one is damaged."


class NotARunFile(RunFileError):
    pass


class RunFileTooNew(RunFileError):
    pass


class RunFileBusy(RunFileError):
    pass


class NotRunning(RunFileError):
    pass


class NotSteerable(RunFileError):
    pass


class RunFileDamaged(RunFileError):
    pass


class LogDamaged(RunFileDamaged):
    pass


class NotConfirmed(RunFileError):
    """`allow` lists what has to be named for the job to run: addresses, variables of keys, model files. It is empty
    where only limits have to be given.
    """

    def __init__(self, message: str, *, path: Path, allow: list[str], fix: str) -> None:
        super().__init__(message, path=path, fix=fix)
        self.allow = allow


class RunFileGone(RunFileError):
    pass


class LogMissing(RunFileError):
    pass


class PlanMismatch(RunFileError):
    """The file at `path` holds another plan: `expected` is the job's, `found` the file's, by part.

    `differences` are in words, the important ones first; without them the parts are shown as they are kept.
    """

    def __init__(
        self,
        path: Path,
        *,
        expected: dict[str, str],
        found: dict[str, str],
        fix: str,
        differences: Iterable[str] = (),
    ) -> None:
        parts = [part for part in expected if expected[part] != found.get(part)]
        listed = list(differences) or [f"{p}: {found.get(p)} in the file, {expected[p]} in this job" for p in parts]
        more = f"; {len(listed) - _MOST_DIFFERENCES} more" if len(listed) > _MOST_DIFFERENCES else ""
        super().__init__(
            f"{path} belongs to another job: {'; '.join(listed[:_MOST_DIFFERENCES])}{more}.", path=path, fix=fix
        )
        self.expected = expected
        self.found = found


class StorageFull(HeadraceError):
    """`temporary` where `path` is the directory of temporary files, and no run file is short of room."""

    def __init__(self, path: Path, reason: str, *, temporary: bool = False) -> None:
        if temporary:
            super().__init__(
                f"Temporary files in {path} cannot grow: {reason}.",
                fix="Make room there, or set SQLITE_TMPDIR and TMPDIR to a directory with more.",
            )
        else:
            super().__init__(
                f"{path} cannot grow: {reason}.",
                fix="Everything journaled so far is safe; make room and run the same job again to go on.",
            )
        self.path = path


class BudgetSpent(HeadraceError):
    pass


class BudgetTooSmall(HeadraceError):
    def __init__(self, message: str, *, budget_bytes: int, used_bytes: int, fix: str) -> None:
        super().__init__(message, fix=fix)
        self.budget_bytes = budget_bytes
        self.used_bytes = used_bytes


class QueryTimeout(HeadraceError):
    """No rows came within `timeout_s` seconds of work."""

    def __init__(self, timeout_s: float) -> None:
        more = f"{10 * timeout_s:g}"
        super().__init__(
            f"The query was ended: it took longer than {timeout_s:g} s.",
            fix=Spelled(
                f"Ask for less, or give it more time: timeout_s={more}.",
                command=f"Ask for less, or give it more time: --timeout {more}.",
            ),
        )
        self.timeout_s = timeout_s


class QueryTooLarge(HeadraceError):
    def __init__(self, most_bytes: int) -> None:
        super().__init__(
            f"The query was ended: SQLite needed more than {most_bytes // 1_000_000} MB for it.",
            fix="Ask for less at once: fewer columns, shorter texts, substr(x, 1, 100).",
        )
        self.most_bytes = most_bytes


class MissingExtra(HeadraceError):
    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed.", fix=f"Install it with: {install_command(package)}")


class InvalidAnswer(HeadraceError):
    pass


class ProviderError(HeadraceError):
    pass


class ProviderUnavailable(ProviderError):
    retry_after_s: float | None = None

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ProviderBusy(ProviderUnavailable):
    pass


class ProviderTimeout(ProviderUnavailable):
    pass


class NetworkAway(ProviderUnavailable):
    pass


class ProviderRefused(ProviderError):
    pass


class ModelUnusable(ProviderRefused):
    """`key_advice` says what to do about the model's key where that is missing or refused; it is empty otherwise."""

    def __init__(self, message: str, *, fix: str = "", key_advice: str = "") -> None:
        super().__init__(message, fix=fix)
        self.key_advice = _shown(key_advice)


class FileUnusable(ProviderRefused):
    def __init__(self, path: str, reason: str, *, as_text: bool = False) -> None:
        super().__init__(f"{path} cannot be {'read as text' if as_text else 'sent'}: {reason}")
        self.path = path
        self.reason = reason


class InterviewFailed(HeadraceError):
    def __init__(self, ordinal: int, question: str, cause: str) -> None:
        super().__init__(
            f"Interview {ordinal} failed at question {question!r}: {cause}.",
            fix="It is recorded in the run file; without stop_on_exception the job would have gone on.",
        )
        self.ordinal = ordinal
        self.question = question
        self.cause = cause


class TaskError(InvalidInput):
    pass


class StepRepeated(InvalidInput):
    def __init__(self, step: str) -> None:
        super().__init__(
            f"The step name {step!r} was used twice in one run.",
            fix='A name stands for one result: number the steps of a loop, as in f"note-{i}".',
        )
        self.step = step


class StepChanged(HeadraceError):
    """The journal holds another call under this step's name than the program makes now; with Engine(strict=True)."""

    def __init__(self, step: str, what: str, *, fix: str) -> None:
        super().__init__(f"Step {step!r} has changed since it was journaled: {what}.", fix=fix)
        self.step = step


class QueueFull(HeadraceError):
    """`depth` runs wait at this priority, and `queue_depth` is the most for each. `wait_s` is a guess by how long runs
    took, 0 where none has ended yet.
    """

    def __init__(self, level: str, *, depth: int, queue_depth: int, wait_s: float) -> None:
        when = f"in about {wait_s:.1f} s" if wait_s else "at some time: no run has ended yet to tell"
        super().__init__(
            f"{depth} agent runs wait at priority {level}, and queue_depth={queue_depth} is the most per priority;"
            f" there may be room {when}.",
            fix="await engine.submit(...) waits for room; a larger queue_depth= makes more of it at each priority.",
        )
        self.depth = depth
        self.queue_depth = queue_depth
        self.wait_s = wait_s


class CircuitOpen(HeadraceError):
    """`retry_after_s` is when the next probe may be submitted, None while as many as may be are in flight. `run_name`
    is the run that failed last, `reason` its error's text.
    """

    def __init__(self, kind: str, *, retry_after_s: float | None, run_name: str = "", reason: str = "") -> None:
        when = "when a probe under way has succeeded" if retry_after_s is None else f"in {retry_after_s:.1f} s"
        first_line = reason.split("\n", 1)[0].rstrip(".")
        last = f" The run {run_name} failed last{f': {first_line}' if first_line else ''}." if run_name else ""
        super().__init__(
            f"{kind} has failed too often and is refused.{last}",
            fix=f"Submit it again {when}. @task(breaker=None) never refuses it.",
        )
        self.kind = kind
        self.retry_after_s = retry_after_s
        self.run_name = run_name
        self.reason = reason


class CommandFailed(HeadraceError):
    pass


class EngineClosed(HeadraceError):
    pass


class RunFailed(HeadraceError):
    """The run ended as `state`; `reason` is its error's text, with the end of its traceback. `is_endpoints`: it failed
    because a model could not be reached or used.
    """

    is_endpoints = False

    def __init__(self, name: str, *, state: str, reason: str, fix: str = "") -> None:
        first_line = reason.split("\n", 1)[0].rstrip(".")
        super().__init__(f"The run {name} {state}{f': {first_line}' if first_line else ''}.", fix=fix)
        self.run_name = name
        self.state = state
        self.reason = reason


class RunCancelled(RunFailed):
    pass


class RunUndecided(RunFailed):
    """`step` has started and not finished."""

    def __init__(self, name: str, step: str) -> None:
        super().__init__(
            name,
            state=f"stopped at step {step!r}, whose side effect has started and may or may not have happened",
            reason="",
            fix=f"Find out, then: await run.resolve({step!r}, result=...) if it has, or"
            f" await run.resolve({step!r}, again=True) to run it again; run.cancel() gives up.",
        )
        self.step = step


class Interrupted(KeyboardInterrupt):
    def __init__(self, path: Path, *, done: int, total: int) -> None:
        super().__init__(
            f"Stopped after {done:,} of {counted(total, 'interview')}; all of them are saved in {visible(str(path))}."
            " Run the same job again to go on."
        )
        self.path = path
        self.done = done
        self.total = total

    def _render_traceback_(self) -> list[str]:
        """IPython's own hook, also in notebooks: the message, and no traceback."""
        return [str(self)]


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that ends an error's fix: the known name closest to a mistyped one, or what there is."""
    names = sorted(known)
    close = closest(name, names)
    if close is not None:
        return f"Did you mean {close!r}?"
    return f"Known here: {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}." if names else ""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to a mistyped one, if any is close."""
    import difflib  # 7 ms that only a mistake should cost

    names = sorted(known)
    in_lower_case = {each.lower(): each for each in names}
    matches = difflib.get_close_matches
    close = matches(name[:_LONGEST_NAME], names, n=1, cutoff=0.6) or [
        in_lower_case[each] for each in matches(name[:_LONGEST_NAME].lower(), in_lower_case, n=1, cutoff=0.6)
    ]
    return close[0] if close else None


def nearest_field(root: str, name: str, known: Iterable[str]) -> str:
    """`nearest`, for a field of an agent or a scenario: one that is no identifier is shown as it is written."""
    names = list(known)
    hint, close = nearest(name, names), closest(name, names)
    return hint if close is None or close.isidentifier() else f'{hint} Write {root}["{close}"].'
