"""A job: a survey, who answers it, about what, with which models. It describes the work and does none of it.

Covers: putting the description together, and the verbs that users call on it. Each verb hands over to a module of its
own: the lists (plan.lists), `estimate` (plan.estimate), `map` (plan.mapping), the checks (plan.fitting, plan.identity),
and `run`, `stream`, `open` and the like (interviews.api).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from headrace.display import counted, first_of, html_note
from headrace.edsl_names import warn_once
from headrace.errors import ListError, SurveyError
from headrace.expressions import Expression
from headrace.limits import RunOptions
from headrace.plan.bit_writer import repeated
from headrace.plan.bitmap import Bitmap
from headrace.plan.called_models import called_models, default_models
from headrace.plan.estimate import Estimate, cost_by_model, estimate
from headrace.plan.fitting import check_files, check_fit, resolve_names, warn_of_mistyped_answers
from headrace.plan.identity import Identity, identity_of
from headrace.plan.left_out import left_out, read_condition
from headrace.plan.lists import AgentList, ModelList, ScenarioList, as_list, gathered
from headrace.plan.mapping import mapped_agent, mapped_survey, rows_of
from headrace.plan.product import Box, Coordinates
from headrace.plan.run_settings import RunSettings, with_run_parameters
from headrace.stand_ins import HostedVerbs
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.scenario import Scenario
from headrace.survey.survey import Survey

if TYPE_CHECKING:
    from headrace.results.asked.prompt_table import PromptTable
    from headrace.results.result import Result
    from headrace.results.results import Results


class Job(HostedVerbs):
    """A job, made by `survey.by(...)`. No interview is built until it runs, and then never all at once."""

    def __init__(self, survey: Survey, agents: Any = None, models: Any = None, scenarios: Any = None) -> None:
        if not isinstance(survey, Survey):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(f"A job cannot be made of {survey!r}.", fix="Give a Survey.")
        self.survey = survey.copy()
        self._agents: AgentList | None = None
        self._scenarios: ScenarioList | None = None
        self._models: ModelList | None = None
        self._take(as_list(given) for given in (agents, models, scenarios) if given is not None)
        self.conditions: tuple[Expression, ...] = ()
        self._left_out: tuple[Coordinates, Bitmap] | None = None  # for one iteration of this shape
        self.origin: Path | None = None  # the run file that it was read from: where it goes on, given no path

    @property
    def agents(self) -> AgentList:
        if self._agents is None:
            self._agents = AgentList([Agent()])
        return self._agents

    @property
    def scenarios(self) -> ScenarioList:
        if self._scenarios is None:
            self._scenarios = ScenarioList([Scenario()])
        return self._scenarios

    @property
    def models(self) -> ModelList:
        if self._models is None:
            self._models = ModelList(default_models(self.survey, self.agents.settings))
        return self._models

    @property
    def is_test(self) -> bool:
        """Whether only the test model answers: nothing is limited, cached or paid for."""
        return all(model.service_name == "test" for model in self.called_models)

    @property
    def called_models(self) -> list[Model]:
        """The models by number: the plan's, then those that questions have of their own; as many as a person writes."""
        return called_models(self.survey, self.models)

    def by(self, *what: Any) -> Job:
        """A job with these agents, scenarios or models added: lists of them or single ones, in any order and mix.

        Single items of a kind in one call are one list. A second list of agents or scenarios is crossed with the
        first, as `*` does; later models replace earlier ones, with a warning.
        """
        job = self._copy()
        job._take(map(as_list, gathered(what)))
        return job

    def where(self, condition: str) -> Job:
        """Leave out the combinations for which the condition is false: `"agent.age > 30 and scenario.city != 'Oslo'"`.

        It may name fields of the agent, the scenario and the model, and `agent._index`. Several conditions must all
        hold. It is evaluated once and kept in the run file (plan.left_out).
        """
        job = self._copy()
        job.conditions = (*self.conditions, read_condition(condition))
        return job

    include_when = where  # EDSL's name for it

    def left_out(self, box: Box) -> Bitmap:
        """The combinations in a box of the plan that the conditions leave out; an iteration of all of it is kept."""
        if box.low[1:] != (0, 0, 0):
            return left_out(self, box)
        once = Coordinates(1, *box.high[1:])
        if self._left_out is None or self._left_out[0] != once:
            self._left_out = once, left_out(self, Box(Coordinates(0, 0, 0, 0), once))
        return repeated(self._left_out[1], box.sides[0])

    def __len__(self) -> int:
        """The number of interviews, for one iteration; a job without a model will have one."""
        if self.conditions:
            box = Box(Coordinates(0, 0, 0, 0), self.shape(1))
            return box.size - self.left_out(box).count
        return len(self.agents) * len(self.scenarios) * (1 if self._models is None else len(self._models))

    @property
    def num_interviews(self) -> int:
        """EDSL's name for `len(job)`."""
        return len(self)

    def interviews(self, n: int) -> int:
        """How many interviews the plan has with `n` iterations; a plan without any is refused."""
        if not (count := len(self)):
            raise ListError("where() leaves out every combination.", fix="Check its conditions against the lists.")
        return count * n

    def model_shares(self) -> list[float]:
        """The part of all interviews that each model has."""
        models, box = len(self.models), Box(Coordinates(0, 0, 0, 0), self.shape(1))
        if not self.conditions:
            return [1 / models] * models
        left_out = self.left_out(box)
        kept = [box.size // models - left_out.count_every(models, model) for model in range(models)]
        return [count / sum(kept) for count in kept]

    def shape(self, n: int) -> Coordinates:
        """How far each digit of the plan's ordinals counts, for `n` iterations."""
        return Coordinates(n, len(self.agents), len(self.scenarios), len(self.models))

    def identity(self) -> Identity:
        """Digests of the survey and of the three lists, by which a run file knows its plan."""
        self.settle_names()
        return identity_of(self.survey, self.agents, self.scenarios, self.models, self.conditions)

    def settle_names(self) -> None:
        """Resolve the bare names of the survey over the lists; a run file holds what its own stand for."""
        if self.origin is None:
            self.survey.resolved = resolve_names(self.survey, self.agents.source.census, self.scenarios.source.census)

    def check(self) -> None:
        """Refuses, before anything runs, values that cannot be stored and names that no agent or scenario has."""
        self.survey.check_questions()
        self.identity()
        check_fit(self)
        check_files(self)
        warn_of_mistyped_answers(self)

    def estimate(self, n: int = 1, *, limit: int | None = None, sample: int | None = None) -> Estimate:
        """Estimates calls, tokens, cost and disk before anything is spent; with `limit` or `sample`, of that part."""
        self.check()
        asked = RunOptions(n=n, limit=limit, sample=sample)
        interviews = self.interviews(asked.n or 1)
        return estimate(self, min(interviews, asked.limit or interviews, asked.sample or interviews))

    def estimate_job_cost(self, iterations: int = 1) -> dict[str, Any]:
        """`estimate` in EDSL's words: a dict of totals, with a line for each model and kind of token."""
        return cost_by_model(self, self.estimate(iterations))

    def prompts(self) -> PromptTable:
        """Every prompt, without running anything: `job.prompts().select("user_prompt", "question_name").print()`.

        A row for each question of each interview, written as it is read. An answer that is not given yet stands as
        `<<mood.answer>>`.
        """
        return _api().prompts(self)

    def show_prompts(self, all: bool = False) -> None:
        """Print the first prompts; `all=True` with every column."""
        self.prompts().show(every_column=all)

    @with_run_parameters
    def run(
        self,
        path: str | Path | None = None,
        *,
        on_result: Callable[[Result], None] | None = None,
        **settings: Unpack[RunSettings],
    ) -> Results:
        """Run to the end, journaling into the run file at `path`; what is journaled there already is not repeated.

        Without a path the file is in the user's data directory, named by the plan: the same program goes on in it.

            on_result          called with each newly sealed result, in this thread
            n                  how often each interview is asked; may grow in the same file
            limit, sample      only the first so many interviews, or so many at random, chosen by `seed`
            memory             "512MB", "60%" of what there is, or "+512MB" on top of what is in use
            concurrency        how many interviews may be in flight, 200 unless given
            workers            how many processes conduct them; 0 is this one
            max_cost           in US dollars; the run stops before more is spent, over all runs of the file
            max_tokens_total   the same for tokens. "none" lifts this and the four before it, which the file keeps
            cache              False does without the replies that earlier runs paid for
            fresh              start over; the old file is kept under another name
            extend             the lists grew at their end
            retry_failed       ask again where an answer was not valid
            stop_on_exception  stop at the first failed interview, and raise its cause
            progress_bar       True, False, "lines" or "log"; unless given, at a terminal and in a notebook
            view               True starts a page beside the run, which stays until this program ends, and says where
            keep               "everything"; "answers": no prompts, no raw responses; "nothing": no rows. It stays
            aggregate          totals that are right after a kill too: {"mean": "mean(answer.rating)"}, or an object
                               with add(result), encode() and decode(state); results.aggregate() reads them
            group_by           the columns by which those texts are grouped: "agent.city"
            telemetry          True exports spans and metrics by OpenTelemetry; prompts and answers stay here

        The others are EDSL's: `memory_threshold` is `memory`, `max_concurrency` is `concurrency`,
        `raise_validation_errors` is `stop_on_exception`; the rest has no effect, and says so once.
        """
        return _api().run(self, path, on_result, **settings)

    @with_run_parameters
    async def run_async(
        self,
        path: str | Path | None = None,
        *,
        on_result: Callable[[Result], Awaitable[None] | None] | None = None,
        **settings: Unpack[RunSettings],
    ) -> Results:
        """`run` for use inside an event loop; `on_result` may be async and is called on that loop."""
        return await _api().run_async(self, path, on_result, **settings)

    @with_run_parameters
    def stream(
        self, path: str | Path | None = None, *, new_only: bool = False, **settings: Unpack[RunSettings]
    ) -> Generator[Result]:
        """Every result of the plan once: stored ones first, then each as it completes. Closing it stops the run."""
        return _api().stream(self, path, new_only=new_only, **settings)

    @with_run_parameters
    def astream(
        self, path: str | Path | None = None, *, new_only: bool = False, **settings: Unpack[RunSettings]
    ) -> AsyncGenerator[Result]:
        """`stream` for use inside an event loop."""
        return _api().astream(self, path, new_only=new_only, **settings)

    @staticmethod
    def map(template: str, data: Any, *, schema: Any = None, system_prompt: str | None = None) -> Job:
        """A job of one prompt per row: `Job.map("Label: {{ text }}", "rows.jsonl", schema=...).by(model)`.

        The text is sent exactly as written, with the row's columns filled in. `data` is a CSV or JSONL file, a data
        frame or any iterable of dicts; `schema` a JSON schema as a dict, a file or a type, which every reply must fit.
        """
        return Job(mapped_survey(template, schema)).by(mapped_agent(system_prompt), rows_of(data))

    @property
    def has_models(self) -> bool:
        """Whether models were given; otherwise the default one answers."""
        return self._models is not None

    def given_lists(self) -> dict[str, AgentList | ScenarioList]:
        """The agents and scenarios that were given, by name."""
        lists = {"agents": self._agents, "scenarios": self._scenarios}
        return {name: rows for name, rows in lists.items() if rows is not None}

    def to_dict(self) -> dict[str, Any]:
        """The job as JSON values, in RAM: survey, agents, scenarios, models and conditions. Functions are refused."""
        from headrace.plan.study_files import job_to_dict

        return job_to_dict(self, {name: rows.to_dict() for name, rows in self.given_lists().items()})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Job:
        """The reverse of `to_dict`."""
        from headrace.plan.study_files import job_from_dict

        return job_from_dict(cls, data)

    @classmethod
    def from_edsl(cls, given: Any, *, allow: str | Iterable[str] = (), files: str | Path | None = None) -> Job:
        """The job that EDSL holds, with its lists and models: an object, a dict, JSON text or a file; see
        `Survey.from_edsl`, `load` for `allow`, and `ScenarioList.from_edsl` for `files`.
        """
        from headrace.edsl_files.from_edsl import from_edsl

        return from_edsl(cls, given, allow, files)

    def save(self, path: str | Path) -> None:
        """Write the job to a `.yaml` or `.json` file. A long list goes into a `.jsonl` file beside it."""
        from headrace.plan.study_files import save_job

        save_job(self, path)

    @classmethod
    def load(cls, path: str | Path, *, allow: str | Iterable[str] = ()) -> Job:
        """Read a study: what `save` has written, or a survey file. Nothing in it is executed.

        A model with an address or a key variable of its own is refused when it runs, unless `allow` names these.
        """
        from headrace.plan.study_files import load_job

        return load_job(cls, path, allow)

    @staticmethod
    def open(path: str | Path, *, allow: str | Iterable[str] = ()) -> Job:
        """The job that a run file holds, read from the file alone. `run` without a path goes on in that file.

        Its models are what the file says: running them is refused unless you have run this plan here yourself, or
        `allow` names each address, and each variable of a key that is not the service's own.
        """
        return _api().open_job(path, allow)

    @staticmethod
    def of(
        survey: Survey,
        agents: AgentList,
        scenarios: ScenarioList,
        models: ModelList,
        conditions: tuple[Expression, ...],
        origin: Path,
    ) -> Job:
        """The job that was read from the run file `origin`."""
        job = Job(survey, agents, models, scenarios)
        job.survey.resolved = survey.resolved
        job.conditions, job.origin = conditions, origin
        return job

    def __repr__(self) -> str:
        if self._models is None:
            return f"Job({self.survey!r}, no model yet)"
        where = "".join(f", where {each.source}" for each in self.conditions)
        lists = f"{self.agents!r} x {self.scenarios!r} x {counted(len(self.models), 'model')}"
        return f"Job({self.survey!r} x {lists}{where})"

    def _repr_html_(self) -> str:
        """Render the survey and the first few agents, scenarios and models; a list that was not given is left out."""
        parts = (self.survey, self._agents, self._scenarios, self._models)
        count = "no model yet" if self._models is None else first_of(len(self), len(self), "interview")
        tables = [part._repr_html_() for part in parts if part is not None]  # pyright: ignore[reportPrivateUsage] # Jupyter's name
        return "".join([html_note(f"A job: {count}"), *tables])

    def _copy(self) -> Job:
        job = Job(self.survey, self._agents, self._models, self._scenarios)
        job.conditions = self.conditions
        return job

    def _take(self, lists: Iterable[AgentList | ScenarioList | ModelList]) -> None:
        models: list[Model] = []  # bounded by what a person writes in one call
        for given in lists:
            match given:
                case AgentList():
                    before, agents = self._agents, _filled("agents", given)
                    self._agents = agents if before is None else before * agents
                case ScenarioList():
                    before, scenarios = self._scenarios, _filled("scenarios", given)
                    self._scenarios = scenarios if before is None else before * scenarios
                case ModelList():
                    models += _filled("models", given)
        if models:
            chosen = ModelList(models)
            self._models = chosen if self._models is None else _replaced_models(self._models, chosen)


Jobs = Job  # EDSL's name for it


def _replaced_models(first: ModelList, second: ModelList) -> ModelList:
    if second != first:
        names = ", ".join(model.name for model in first)
        warn_once(f"A later by() replaces the models of an earlier one ({names}). Give all models in one call of by().")
    return second


def _filled(what: str, given: Any) -> Any:
    if not len(given):
        raise ListError(f"The list of {what} is empty.", fix="Give at least one item.")
    return given


def _api() -> Any:
    """The module that runs jobs. It lies below this one in the list of folders, so it is imported when it is called."""
    from headrace.interviews import api

    return api
