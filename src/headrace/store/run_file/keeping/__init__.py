"""What a run file keeps of its interviews where that is not everything, and the totals of their results.

    keep           a finished interview leaves
    "everything"   a row in `interviews` and its detail: as in every file of version 2
    "answers"      the same without prompts and raw responses, and without a second copy of its answers in the detail
    "nothing"      one bit in `finished`; of a failed one also its causes and the answers that it has, of the first
                   thousands that failed

- A file knows its keep and the text of its totals from its first moment (`stored_keep`): both stand in `meta`, under
  the plan's checksum. A run that asks for another is refused, since half a file could not be read either way. Such a
  file has version 3, so that an older Headrace refuses it instead of going on without its totals.
- `finished_bits`: one bitmap for interviews with all their answers and one for each cause of failure, in compressed
  blocks. An interview is in at most one of them, so that running again finds which to retry, however many failed.
- `stored_totals`: the encoded state of each group of the totals. It is written in the transaction that writes the rows
  or the bits, so that after a kill the totals are those of exactly the finished interviews.
- `unkept_rows` writes all that for "nothing"; the journal writes rows otherwise.
"""
