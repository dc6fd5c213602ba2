"""EDSL's files: what EDSL 1.0.9 saves is read, and results are written so that EDSL loads them.

Why: studies move here one at a time, and colleagues stay where they are. EDSL itself is never imported: its objects are
asked for `to_dict()`, its files are JSON, and nothing in them is executed.

    what was given ──► given_data ──► EdslData: the members of one JSON object, long lists as streams
      an object, a dict,     │ json_stream   one value at a time out of a file of any length
      JSON text, a path      │ ep_packages   `.ep`, a zip of a git work tree: read, never checked out
                             ▼
         survey_reading, list_reading, model_reading, job_reading ──► Survey, AgentList, ..., Job
         result_rows ──► results_import ──► a run file
    a run file ──► results_writing (survey_writing) ──► .json or .json.gz

- What has no counterpart here is noted (`carried_over`): each caller warns with the whole list, the command prints it.
  What would change what is asked is an error: an unknown kind of question, an unknown part of a rule, code.
- Code is named and left alone: EDSL stores functions as source text, and some old files as pickles.
- A file of a newer EDSL is read as far as it is known. Its unknown parts are noted with its version.
- Everything is bounded: one value of a file by 64 million letters, nesting by the decoder, the rest by streaming.
"""
