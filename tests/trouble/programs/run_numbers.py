"""Adds up what a server answers: PATH URL AGENTS WINDOW WORKERS KEEP."""

import sys

from headrace import Agent, AgentList, Job, Model, QuestionNumerical, Survey
from tests.trouble.programs.telling import outcome_of, tell

FACTORS = (3, 5)
CHAIN = (3, 5, 7, 11, 13, 17, 19, 23)  # each asked when the one before is answered
TOTALS = {"n": "count()", "three": "sum(answer.times3)", "five": "sum(answer.times5)", "most": "max(answer.times5)"}
GROUPS = 4


def numbers_job(url: str, agents: int, *, is_chain: bool = False) -> Job:
    questions: list[QuestionNumerical] = []
    for factor in CHAIN if is_chain else FACTORS:
        before = f"After {{{{ {questions[-1].question_name}.answer }}}}: " if is_chain and questions else ""
        text = f"{before}Number {{{{ agent.number }}}}, times {factor}."
        questions.append(QuestionNumerical(question_name=f"times{factor}", question_text=text))
    people = AgentList(Agent(traits={"number": number, "group": number % GROUPS}) for number in range(agents))
    return Survey(questions).by(people).by(Model("m", base_url=url, service_name="openai_compatible"))


if __name__ == "__main__":
    path, url, agents, window, workers, keep = sys.argv[1:]
    job = numbers_job(url, int(agents))
    options = {"concurrency": int(window), "workers": int(workers), "cache": False, "memory": "+512MB"}
    tell(started=True)
    tell(**outcome_of(lambda: job.run(path, keep=keep, aggregate=TOTALS, group_by="agent.group", **options).close()))
