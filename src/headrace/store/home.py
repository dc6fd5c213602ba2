"""Where files live when no path is given: the user's data directory, or HEADRACE_HOME."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.plan.job import Job


def home() -> Path:
    """The directory for files without a path."""
    given = os.environ.get("HEADRACE_HOME")
    if given:
        return Path(given).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "headrace"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "headrace"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "headrace"


def default_path(job: Job) -> Path:
    """The run file of a job without a path. The same plan has the same name, so that the same program run twice goes
    on; a job that was read from a file stays in that file.
    """
    if job.origin is not None:
        return job.origin
    first_question = re.sub(r"\W", "", job.survey.questions[0].question_name, flags=re.ASCII)[:30] or "survey"
    return home() / "runs" / f"{first_question}-{job.identity().digest[:12]}.run"


def cache_path() -> Path:
    """The response cache, one for all runs."""
    return home() / "cache.sqlite"
