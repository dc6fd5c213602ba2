"""`headrace demo` runs a small survey (moods, people) and shows its answers (demo_run, pictures)."""
