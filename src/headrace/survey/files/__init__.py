"""Files in prompts: documents and pictures that a scenario's field refers to.

    FileStore("cat.png") ──► {"$file": {path, digest, bytes, type}} in the row ──► FileStore, when a row is decoded
                                                                                      │
    "What is {{ scenario.photo }}?" ──► template ──► a mark at that place ──► survey.files.marks.split ◄┘
                                                                                      │
    the prompt in words, and where in it which file stands ──► a protocol makes content parts of both

- A row, a list and a plan hold references. `file_store` digests a file when it is referred to, `checked_file` reads it
  again in blocks when it is sent: bytes that are not the ones digested are never sent whole.
- `file_contents` says where bytes are read from: a source that a run has added (the run file, a picture made smaller,
  the controller of a node's worker), else the path.
- `file_types` goes by a file's first bytes, then by its name: a picture that is none is refused with its path.
- A mark holds digits that are drawn when the process starts, so that no data can be taken for one (`marks`). What is
  kept of a prompt has the file in words.
- `taken` says which services take which kinds of files, so that a run can refuse before anything is paid.

Does not cover: sending (models.http_client.file_bodies) and content parts (models.protocols).
"""
