"""Reads a sheet of a workbook, as a program of its own: `python excel_child.py most_bytes [sheet] < workbook`.

It prints each row that is not empty as a JSON list, and then one JSON object that tells how reading ended. Memory and
CPU time are limited by the operating system: the library makes room for every cell between the first and the last one
of a sheet, and a cell may say that it lies anywhere. It imports nothing of Headrace, so that it starts quickly.
"""

import datetime as dt
import json
import sys
import zipfile

_MEMORY_BYTES = 250_000_000  # beside what the workbook's own bytes need
_MEMORY_PER_BYTE = 8  # unpacked; rows of five numbers took 5
_CPU_S = 300
_BLOCK_BYTES = 1 << 20


def main(most_bytes: int, sheet: str | None) -> dict[str, object]:
    """How reading ended."""
    _limit(most_bytes)
    try:
        import python_calamine
    except ImportError:
        return {"missing": True}
    file = sys.stdin.buffer
    try:
        unpacked = _unpacked_bytes(most_bytes)
        if unpacked > most_bytes:
            return {"too_large": True}
        _limit(unpacked)
        file.seek(0)
        book = python_calamine.CalamineWorkbook.from_filelike(file)
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            return {"sheets": names}
        found = book.get_sheet_by_index(0) if sheet is None else book.get_sheet_by_name(sheet)
        written = passed_over = 0
        for row in found.iter_rows():
            if any(cell != "" for cell in row):
                sys.stdout.write(json.dumps([*map(_plain, row)]) + "\n")
                written += 1
            elif written:
                passed_over += 1
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001, zipfile and the library raise many kinds for a broken file
        return {"broken": str(error) or type(error).__name__}
    return {"whole": True, "passed_over": passed_over}


def _unpacked_bytes(most_bytes: int) -> int:
    """What the workbook really unpacks to, as far as it is not too much: what a file says of itself may be false."""
    file = sys.stdin.buffer
    if not zipfile.is_zipfile(file):
        return file.seek(0, 2)
    total = 0
    archive = zipfile.ZipFile(file)
    for part in archive.infolist():
        if total + part.file_size > most_bytes:
            return total + part.file_size
        with archive.open(part) as content:  # which ends with an error where it is longer than it says
            while block := content.read(_BLOCK_BYTES):
                total += len(block)
    return total


def _plain(value: object) -> object:
    """A cell as JSON holds it: Excel stores every number as a float, and an empty cell as an empty text."""
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    return None if value == "" else value


def _limit(content_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    memory_bytes = _MEMORY_BYTES + _MEMORY_PER_BYTE * content_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    end = main(int(sys.argv[1]), *map(json.loads, sys.argv[2:3] or ["null"]))
    sys.stdout.write(json.dumps(end) + "\n")
    sys.stdout.flush()
