"""Which question follows which: the rules of a survey, and what each question has to wait for.

    rules of a survey ──► Route (compiled once) ──► for one interview: asked, skipped, or not asked

- A rule that stands after a question may jump to a later one or to the end; the last added that holds decides. A rule
  that stands before a question skips it, or jumps from it. What is jumped over or skipped is None and no failure.
- A question that is skipped has no say: its own rules are not looked at.
- A rule whose answers are missing, because a question failed, cannot be decided. The questions it could have jumped
  over are then not asked; whatever comes behind its furthest jump is reached either way, and is asked.
- A question waits for the answers that its text and its rules name, for those it remembers, and for the rules that
  could jump over it. Nothing else: all other questions of an interview may be asked at the same time.
"""
