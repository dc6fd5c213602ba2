"""Several run files of one survey made into one: `headrace merge a.run b.run -o c.run`.

Why: a job is split over machines, by a sample, by a part of the people or by model, and is then one study again.

    merge_source  a file that is read: its header, plan and lists, at one moment, each row checked
    list_joining  the lists of agents, scenarios and models as one; which place in it each of theirs has
    merged_plan   what may be merged; the plan that grows by each file's lists
    merging       the new file: begun as a copy of the first, then each other file's rows are added

- The plan of the new file is that of the first, grown by what the others add, as `extend` and `n` grow it: ordinals of
  the first stay. A row of another file keeps its agent, scenario, model and iteration, and gets the ordinal that these
  have in the new plan.
- Survey and conditions must be the same, and the files may differ in one of the lists only, or in `n`. Otherwise the
  merged plan would ask for combinations that no file asked for, and `resume` would pay for them. Lists are joined by
  content: what both have stands once, the second of two equal ones beside the second.
- An interview that several have: the first file's stays, unless it failed and another's did not.
- What was spent is added up, the dropped duplicates included: it was paid. Copies of one file share runs; of such a
  file only what its taken rows took is added.
- Rows of the first file are copied as they are. Others get a new checksum, and their details are compressed again,
  because a file's details share one dictionary. Answers in flight are kept, so that `resume` goes on where each was.
- Memory is flat: pages of rows, and temporary tables on disk where lists are joined. The new file gets its name when
  it is whole.
"""
