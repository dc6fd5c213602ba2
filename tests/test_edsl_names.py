"""EDSL's parameters of run(), and what of EDSL belongs to its service."""

import inspect
import subprocess
import sys

import pytest

from headrace import (
    Agent,
    AgentList,
    Cache,
    Coop,
    HeadraceWarning,
    Job,
    Model,
    Notebook,
    QuestionFreeText,
    Results,
    Scenario,
    ScenarioList,
    Survey,
    edsl_names,
)
from headrace.errors import InterviewFailed, NotInHeadrace, OptionError
from headrace.interviews.api import run_options
from headrace.limits import RunOptions

ASK = QuestionFreeText(question_name="q", question_text="Well?")
# Every parameter of Jobs.run in EDSL 1.0.9: its RunParameters and RunEnvironment.
EDSL_PARAMETERS = """
n progress_bar stop_on_exception check_api_keys verbose print_exceptions remote_cache_description
remote_inference_description remote_inference_results_visibility skip_retry raise_validation_errors background
disable_remote_cache disable_remote_inference use_remote_inference_endpoint use_api_proxy offload_execution job_uuid
fresh memory_threshold new_format expected_parrot_api_key alert_on_completion_config results_description task_timeout
max_concurrency cache bucket_collection key_lookup jobs_runner_status
"""


@pytest.fixture(autouse=True)
def _warned_of_nothing_yet(monkeypatch):
    monkeypatch.setattr(edsl_names, "_said", set())


def test_every_parameter_of_edsls_run_has_its_place():
    known = {*edsl_names.SAME_PARAMETERS, *edsl_names.EDSL_ONLY}
    assert known == set(EDSL_PARAMETERS.split())
    assert edsl_names.EdslParameters.__annotations__.keys() == edsl_names.EDSL_ONLY


@pytest.mark.parametrize("name", ["run", "run_async", "stream", "astream"])
def test_help_lists_every_parameter_with_its_default(name):
    shown = inspect.signature(getattr(Job, name)).parameters
    defaults = dict(zip(RunOptions.__struct_fields__, RunOptions.__struct_defaults__, strict=True))
    assert {option: shown[option].default for option in defaults} == defaults
    assert shown.keys() >= edsl_names.EDSL_ONLY
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in shown.values())


def test_a_parameter_without_effect_says_so_once_and_where():
    with pytest.warns(HeadraceWarning, match=r"background= has no effect in Headrace\. Use run_async") as said:
        run_options({"background": True})
    assert said[0].filename == __file__
    assert run_options({"background": True}) == RunOptions()


def test_what_is_so_anyway_needs_no_warning(tmp_path):
    job = ASK.by(Model("test", canned_response="Fine"))
    usual = {
        "disable_remote_inference": True,
        "disable_remote_cache": True,
        "progress_bar": False,
        "cache": Cache(),
        "print_exceptions": False,
        "verbose": False,
        "background": False,
        "key_lookup": None,
        "raise_validation_errors": False,
    }
    assert job.run(tmp_path / "a.run", **usual)[0].answer["q"] == "Fine"


def test_renamed_parameters_are_the_option_itself():
    assert run_options({"memory_threshold": "300MB", "max_concurrency": 7}) == RunOptions(memory="300MB", concurrency=7)
    assert run_options({"memory_threshold": None, "max_concurrency": None, "cache": None}) == RunOptions()
    with pytest.raises(OptionError, match="two names for one option"):
        run_options({"memory_threshold": "300MB", "memory": "200MB"})
    with pytest.raises(OptionError, match="max_concurrency"):
        run_options({"max_concurency": 7})


def test_raise_validation_errors_stops_at_an_invalid_answer(tmp_path):
    ask = QuestionFreeText(question_name="q", question_text="Well?")
    job = Survey([ask]).by(Model("test", canned_response=""))
    with pytest.raises(InterviewFailed):
        job.run(tmp_path / "a.run", raise_validation_errors=True)


def test_an_unknown_parameter_stays_an_error():
    with pytest.raises(OptionError, match=r"no option 'progressbar'\. Did you mean 'progress_bar'"):
        run_options({"progressbar": True})


def test_a_run_without_a_path_says_nothing_and_goes_on(tmp_path):
    program = """
from headrace import Model, QuestionFreeText
ask = QuestionFreeText(question_name="q", question_text="Well?")
results = ask.by(Model("test", canned_response="Fine")).run()
print([result.answer["q"] for result in results], results.stats().reused)
"""
    home = {"HEADRACE_HOME": str(tmp_path), "PATH": ""}
    for reused in ("0", "1"):
        ran = subprocess.run([sys.executable, "-c", program], env=home, capture_output=True, text=True, check=True)
        assert (ran.stdout, ran.stderr) == (f"['Fine'] {reused}\n", "")


def test_a_cache_may_be_made_and_passed_but_not_filled():
    assert (repr(Cache()), bool(Cache())) == ("Cache()", True)
    assert run_options({"cache": Cache()}).cache
    with pytest.raises(NotInHeadrace, match=r"Cache\.keys belongs to EDSL.*cache=False does without"):
        Cache().keys()
    with pytest.raises(NotInHeadrace, match="counted"):
        len(Cache())


@pytest.mark.parametrize("made", [Coop, Notebook])
def test_what_belongs_to_the_service_says_so(made):
    with pytest.raises(NotInHeadrace, match=f"{made.__name__} belongs to EDSL's service"):
        made()


@pytest.mark.parametrize(
    "held",
    [ASK, Survey([ASK]), ASK.by(), Agent(), AgentList([]), Scenario(), ScenarioList([]), Model("test")],
    ids=lambda held: type(held).__name__,
)
def test_the_services_verbs_are_refused_with_the_way_to_do_it_here(held):
    with pytest.raises(NotInHeadrace, match=r"push\(\) belongs to EDSL's service.*save\(path\)"):
        held.push(description="x")
    with pytest.raises(NotInHeadrace, match=r"pull\(\) belongs"):
        type(held).pull("uuid")
    with pytest.raises(NotInHeadrace, match=r"humanize\(\) belongs"):
        held.humanize()


def test_results_are_opened_not_pulled():
    with pytest.raises(NotInHeadrace, match=r"Results\.open\(path\)"):
        Results.pull("uuid")
