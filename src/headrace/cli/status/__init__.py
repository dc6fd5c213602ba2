"""The status of a run file or an engine's file, for `status`, `runs`, `pause`, `tune`, `stop` and `resume`.

People and scripts ask for it often, so it is read without what takes long to load: the survey in the file, and the
verbs of results. tests/test_light_starts.py names what must not be loaded.
"""
