"""The `headrace` command: the same jobs, runs and results as from Python, typed at a terminal.

    main ──► job_commands (run, map, resume) ──► arguments: the job ──► job.run ──► output
         ├─► steering_commands (status, pause, tune, stop) ──► run_status ──► the run's file and its process
         ├─► file_commands (results, export, runs, copy, merge, compact, verify) ──► queries, output, run_files
         └─► top/, demo/, doctor/

- A module that declares commands imports little, because `headrace --help` loads all of them; a command imports what it
  needs when it is called. `options` declares each shared option once: `RunFlags` are those of run, map and resume.
- `error_messages` wraps each command: an error becomes a message on standard error and an exit code; the library's log
  records become lines there. An error that names an option has the command's spelling too (`errors.Spelled`).
- Text for people adapts to the terminal's width and letters (`terminal`, `tables`) and never steers the terminal,
  whatever a model or a file wrote; data for programs is always UTF-8.
- `confirm_prompt` asks before a run file from elsewhere is run (`interviews.permissions` decides whether it must).
- `doctor` needs only the standard library and typer, because it must run where an installation is broken.
"""
