"""`headrace demo`: a job worth looking at (job), run and shown (showing), with what is drawn of it (pictures)."""
