"""The same survey with a function that a worker can import."""

from headrace import Job
from headrace.models.provider import Request
from tests.interviews.keeping.kept_jobs import kept_job, rating


def respond(request: Request) -> str:
    return "Good" if request.question_name == "mood" else str(rating(request.agent["age"], request.scenario["city"]))


def worker_job(agents: int) -> Job:
    return kept_job(respond, agents)
