"""The programs that are measured, each in a process of its own. They print their figures as one line of JSON."""
