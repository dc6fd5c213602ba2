"""Feeds encoded rows to a run file's journal: `fed_rows PATH KEEP ROWS ROWS_IN_A_COMMIT`.

Rows are made as an executor sends them, while the clock stands still: one short answer, a prompt and a reply of a line.
"""

import asyncio
import sys
import time
from pathlib import Path

from benchmarks.processes import loop_ms, peak_resident_bytes, print_figures
from headrace import Agent, AgentList, Job, Model, QuestionFreeText
from headrace.limits import Keep, RunOptions
from headrace.store.run_file.keeping.stored_keep import WantedKeeping
from headrace.store.run_file.rows import DetailPacker, Row, RowBatch, Status, row_batch
from headrace.store.run_file.run_file import RunFile
from headrace.store.writer_thread import WriterThread
from headrace.survey.record import AnswerRecord, AnswerState, Detail, Usage, encode_detail

_AGENTS = 1_000
_AT_ONCE = 20_000  # rows that are made before the clock runs again


def main(path: Path, keep: Keep, rows: int, in_a_commit: int) -> None:
    job = _job()
    options, wanted = RunOptions(n=-(-rows // _AGENTS)), WantedKeeping(keep=keep)
    file = RunFile.open(path, job, options, lambda: None, wanted=wanted)
    wall_s, cpu_s = asyncio.run(_feed(file, keep, rows, in_a_commit))
    assert file.stored.count == rows
    file.close()
    print_figures(
        wall_s=wall_s, cpu_s=cpu_s, bytes=path.stat().st_size, peak_bytes=peak_resident_bytes(), loop_ms=loop_ms()
    )


async def _feed(file: RunFile, keep: Keep, rows: int, in_a_commit: int) -> tuple[float, float]:
    writer, packer = WriterThread(file.live), DetailPacker(file.dictionary)
    wall_s = cpu_s = 0.0
    for first in range(0, rows, _AT_ONCE):
        behind = min(first + _AT_ONCE, rows)
        batches = [
            _batch(packer, keep, range(at, min(at + in_a_commit, behind))) for at in range(first, behind, in_a_commit)
        ]
        began_s, cpu_before_s = time.perf_counter(), time.process_time()
        for batch in batches:
            await writer.call(file.journal.commit, [batch], ())
        wall_s += time.perf_counter() - began_s
        cpu_s += time.process_time() - cpu_before_s
    writer.close()
    return wall_s, cpu_s


def _job() -> Job:
    ask = QuestionFreeText(question_name="q", question_text="How is it in {{ agent.place }}?")
    people = AgentList(Agent({"place": f"place {number}"}) for number in range(_AGENTS))
    return ask.by(people).by(Model("test", canned_response="Fine, thank you."))


def _batch(packer: DetailPacker, keep: Keep, ordinals: range) -> RowBatch:
    return row_batch([_row(packer, keep, ordinal) for ordinal in ordinals])


def _row(packer: DetailPacker, keep: Keep, ordinal: int) -> Row:
    iteration, agent = divmod(ordinal, _AGENTS)
    text = "Fine, thank you."
    record = AnswerRecord(0, AnswerState.ANSWERED, text, attempts=1, input_tokens=9, output_tokens=4, took_ms=3)
    if keep is Keep.EVERYTHING:
        record.prompt, record.raw = f"How is it in place {agent}?", text.encode()
    else:
        record.value = None
    packed = packer.compress(encode_detail(Detail("", 1.7e9, [record])))
    detail = b"" if keep is Keep.NOTHING else packed
    usage = Usage(calls=1, input_tokens=9, output_tokens=4)
    return Row(ordinal, iteration, agent, 0, 0, Status.DONE, [text], None, detail, [], usage)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Keep(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
