"""The run files and engine files of the page's places, each in a line."""

from __future__ import annotations

import msgspec
from msgspec import structs

from headrace.agents.steering.engine_client import engine_state
from headrace.display import counted
from headrace.errors import HeadraceError, LogMissing, NotSteerable
from headrace.interviews.steering.run_file_status import NEEDS_KEY, RunFileStatus
from headrace.models.model_endpoints import needed_keys
from headrace.store.engine_file.engine_overview import read_overview
from headrace.store.lock import writer_of
from headrace.store.run_file.removal import disk_bytes
from headrace.units import format_bytes
from headrace.web.operations import PageOperation
from headrace.web.shown_files import ShownFile, ShownFiles, ShownKind
from headrace.web.shown_texts import age, bytes_of, money, number, part_of, share

DAMAGED, LOG_MISSING = "damaged", "log missing"
UNREADABLE = frozenset({DAMAGED, LOG_MISSING})


class ListedTexts(msgspec.Struct, frozen=True, kw_only=True):
    """A file's figures as they are shown; empty where it does not have one."""

    progress: str = ""
    failed: str = ""
    cost: str = ""
    memory: str = ""
    size: str = ""
    changed: str = ""


class ListedFile(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is running, paused, stopping, needs a key, complete, not running, damaged or log missing; `goes_on` says
    whether a process has the file open. `needs` says what to do about a key that is missing or refused. `trouble` says
    why a file cannot be read, or why its process cannot be asked, so that the figures are its file's. Figures that a
    file does not have are null: an engine file has no total, and only what runs uses memory. `percent` is what is done
    of the total.
    """

    id: str
    name: str
    kind: ShownKind
    state: str
    goes_on: bool
    size_bytes: int
    changed_at: float
    done: int | None = None
    total: int | None = None
    failed: int | None = None
    cost: float | None = None
    memory_bytes: int | None = None
    budget_bytes: int | None = None
    needs: str = ""
    trouble: str = ""
    percent: int | None = None
    texts: ListedTexts = ListedTexts()


class FileList(msgspec.Struct, frozen=True):
    """Those that go on first, by name, then the latest first; `truncated` where there are more."""

    files: list[ListedFile]
    truncated: bool


class ListParameters(msgspec.Struct, frozen=True):
    pass


def _run_list(files: ShownFiles, _: ListParameters) -> FileList:
    found, is_cut = files.latest()
    return FileList(listed_files(files, found), is_cut)


def listed_files(files: ShownFiles, found: list[ShownFile]) -> list[ListedFile]:
    """A line for each, those that go on first, by name: they are written all the time, and by the time of their last
    change they would change places at every look.
    """
    lines = [listed_file(files, file) for file in found]
    going = sorted((line for line in lines if line.goes_on), key=lambda line: (line.name, line.id))
    return going + [line for line in lines if not line.goes_on]


def listed_file(files: ShownFiles, file: ShownFile) -> ListedFile:
    changed_at = file.changed_at
    line: ListedFile | None = files.lines.find(file.path, changed_at)
    if line is None:
        line = _listed(file)
        if not line.goes_on:  # its process may end right now, which does not change its file
            files.lines.keep(file.path, changed_at, line)
    return structs.replace(line, texts=_texts(line))


def _texts(line: ListedFile) -> ListedTexts:
    """Made for each look: how long ago something was changes by itself."""
    if line.total is not None:
        progress = part_of(line.done or 0, line.total)
    else:
        progress = "" if line.done is None else f"{counted(line.done, 'agent run')} ended"
    has_memory = line.memory_bytes is not None and line.budget_bytes is not None
    return ListedTexts(
        progress=progress,
        failed="" if line.failed is None else number(line.failed),
        cost="" if line.cost is None else money(line.cost),
        memory=bytes_of(line.memory_bytes or 0, line.budget_bytes or 0) if has_memory else "",
        size=format_bytes(line.size_bytes),
        changed=age(line.changed_at),
    )


def _listed(file: ShownFile) -> ListedFile:
    try:
        return _engine_line(file) if file.kind is ShownKind.ENGINE else _run_line(file)
    except HeadraceError as error:
        return ListedFile(
            id=file.id,
            name=file.path.name,
            kind=file.kind,
            state=LOG_MISSING if isinstance(error, LogMissing) else DAMAGED,
            goes_on=False,
            size_bytes=disk_bytes(file.path),
            changed_at=file.changed_at,
            trouble=error.message,
        )


def _run_line(file: ShownFile) -> ListedFile:
    status = RunFileStatus.at(file.path, is_brief=True)
    progress = None if status.live is None else status.live.progress
    return ListedFile(
        id=file.id,
        name=file.path.name,
        kind=file.kind,
        state=status.state,
        goes_on=status.goes_on,
        size_bytes=status.size_bytes,
        changed_at=file.changed_at,
        done=status.done,
        total=status.total,
        percent=share(status.done, status.total),
        failed=status.stats.failed,
        cost=status.stats.cost,
        memory_bytes=None if progress is None else progress.memory_bytes,
        budget_bytes=None if progress is None else progress.budget_bytes,
        needs=status.needed_keys,
        trouble=status.trouble,
    )


def _engine_line(file: ShownFile) -> ListedFile:
    live, trouble = None, ""
    try:
        live = engine_state(file.path)
    except NotSteerable as error:  # it is open all the same, and its file says the rest
        trouble = error.message
    overview, is_open = read_overview(file.path, 0), writer_of(file.path) is not None
    needs = "" if live is None else needed_keys(live.status.endpoints)
    return ListedFile(
        id=file.id,
        name=file.path.name,
        kind=file.kind,
        state=NEEDS_KEY if needs else "running" if is_open else "not running",
        goes_on=is_open,
        size_bytes=disk_bytes(file.path),
        changed_at=file.changed_at,
        done=sum(count for state, count in overview.runs.items() if state.is_final),
        failed=overview.failed,
        memory_bytes=None if live is None else live.status.memory_bytes,
        budget_bytes=None if live is None else live.status.budget_bytes,
        needs=needs,
        trouble=trouble if is_open else "",
    )


RUN_LIST = PageOperation(
    name="runs",
    summary="The run files and engine files that this page shows.",
    path="/runs",
    parameters=ListParameters,
    reply=FileList,
    call=_run_list,
)
