"""Sends each picture of a folder to a model, on a Ray cluster whose nodes do not have them: PATH URL FOLDER ADDRESS.

The folder has a name that leads there in this process alone: elsewhere the descriptor is another file's, or nobody's.
"""

import logging
import os
import sys
from pathlib import Path

from headrace import FileStore, Model, QuestionFreeText, Ray, Scenario, ScenarioList, Survey
from tests.trouble.programs.telling import outcome_of, peak_bytes, tell

if __name__ == "__main__":
    path, url, folder, address = sys.argv[1:]
    logging.getLogger("headrace").addHandler(logging.NullHandler())
    here = Path(f"/proc/self/fd/{os.open(folder, os.O_RDONLY)}")
    photos = ScenarioList(Scenario({"photo": FileStore(each)}) for each in sorted(here.iterdir()))
    look = QuestionFreeText(question_name="seen", question_text="What is in {{ scenario.photo }}?")
    model = Model("m", service_name="openai_compatible", base_url=url, timeout_s=60.0)
    job = Survey([look]).by(photos).by(model)
    outcome = outcome_of(lambda: job.run(path, executor=Ray(address), cache=False, n=4).close())
    tell(**outcome, peak_bytes=peak_bytes())
