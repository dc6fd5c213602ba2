import ast
import re
from pathlib import Path

import pytest

from headrace.models import provider as contract
from headrace.models.http_client.http_options import HTTP_PARAMETERS, HttpOptions
from headrace.models.protocols import anthropic_messages, function, local, openai_chat
from headrace.models.protocols import test_model as canned
from headrace.survey.known_services import SERVICES, key_names
from tests.docs.documents import DOCS, code_names, run_program, sections, tables

DOCUMENT = (DOCS / "models.md").read_text("utf-8")
SECTIONS = {section.title: section.text for section in sections(DOCUMENT)}
PROGRAMS = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
# What the examples call, in place of packages that reach the network.
CLIENTS = """
from types import SimpleNamespace as Thing


class Client:
    def __init__(self, max_retries):
        assert max_retries == 0
        self.chat = Thing(completions=self)
        self.messages = self

    async def create(self, model, messages, **further):
        said = Thing(message=Thing(content=f"{model} read {messages[-1]['content'][:5]}"))
        usage = Thing(prompt_tokens=40, completion_tokens=2)
        return Thing(choices=[said], usage=usage, content=[Thing(text=said.message.content)])


async def acompletion(num_retries, **asked):
    return await Client(num_retries).create(**asked)


AsyncOpenAI = AsyncAnthropic = Client
"""
RUN = """
from headrace import Agent, QuestionFreeText, Survey
question = QuestionFreeText(question_name="q", question_text="Well?")
results = Survey([question]).by(Agent({"age": 30}), model).run("a.run", progress_bar=False)
print(results[0].answer["q"], results.stats().tokens, sep=";")
"""


def parameters(title: str) -> dict[str, list[str]]:
    """The rows of the section's one table, by the parameter that each is about."""
    (table,) = tables(SECTIONS[title])
    return {name: rest for names, *rest in table for name in code_names(names)}


def test_the_services_are_those_there_are():
    (table,) = tables(SECTIONS["Services"])
    told = {code_names(name)[0]: (speaks, code_names(address), key) for name, speaks, address, key in table}
    for name, service in SERVICES.items():
        address = [service.base_url] if service.base_url else ["base_url"]
        assert told.pop(name) == (
            service.protocol.value,
            address,
            f"`{service.key_env}`" if service.key_env else "none",
        )
    assert told == {}
    assert [name for name in re.findall(r"`([A-Z_]+_API_KEY)`", DOCUMENT) if name not in key_names()] == []


@pytest.mark.parametrize(
    ("title", "known"),
    [
        ("Every model", contract._OF_EVERY_MODEL),
        ("Over HTTP", HTTP_PARAMETERS),
        ("Chat completions", openai_chat._PARAMETERS - HTTP_PARAMETERS),
        ("Anthropic", anthropic_messages._PARAMETERS - HTTP_PARAMETERS),
        ("Local models", {"path", "prompt_cache", *local._NUMBERS}),
        ("The test model", canned._PARAMETERS),
        ("Functions of your own", function._PARAMETERS),
    ],
)
def test_each_kind_of_model_lists_its_parameters(title: str, known: set[str]):
    assert set(parameters(title)) == set(known)


def test_the_numbers_of_a_local_model_are_those_it_has():
    told = parameters("Local models")
    for name, (default, least, most) in local._NUMBERS.items():
        usual = "the cores, at most 8" if name == "threads" else default
        assert told[name][:3] == [str(each).removesuffix(".0") for each in (usual, least, most)], name
    assert local._MOST_THREADS == 8


def test_the_defaults_over_http_are_those_it_has():
    told, options = parameters("Over HTTP"), HttpOptions(base_urls=(), extra_headers={}, extra_body={})
    for name in ("connect_timeout_s", "read_timeout_s", "timeout_s", "max_response_bytes", "stream"):
        assert told[name][0] == f"{getattr(options, name)}".removesuffix(".0"), name


@pytest.mark.parametrize(("service", "title"), [(openai_chat, "Chat completions"), (anthropic_messages, "Anthropic")])
def test_the_bounds_of_sampling_are_those_it_has(service, title: str):
    told = parameters(title)
    for name, (least, most) in service._SAMPLING.items():
        assert told[name][0].startswith(f"{least:g} to {most:g}"), name


def test_the_models_named_can_be_made(tmp_path: Path):
    named = [code for code in code_names(SECTIONS[""]) if code.startswith("Model(") and "**" not in code]
    assert len(named) == 6
    program = tmp_path / "models.py"
    program.write_text(PROGRAMS[0] + "\n".join(f"print({code}.service_name)" for code in named), "utf-8")
    services = ["test", "local", "openai", "groq", "openai_compatible", "anthropic"]
    assert run_program(program, tmp_path).split() == services


@pytest.mark.parametrize(("place", "client"), [(1, "openai"), (2, "anthropic"), (3, "litellm")])
def test_a_client_of_another_package_answers(place: int, client: str, tmp_path: Path):
    written = PROGRAMS[place]
    assert any(name.startswith(client) for name in imported(written))
    (tmp_path / f"{client}.py").write_text(CLIENTS, "utf-8")
    (tmp_path / "program.py").write_text(written + RUN, "utf-8")
    answer, tokens = run_program(tmp_path / "program.py", tmp_path).strip().split(";")
    assert answer.endswith("read Well?")
    assert int(tokens) == (42 if client == "openai" else 0)


def imported(program: str) -> list[str]:
    found = [node for node in ast.walk(ast.parse(program)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return [node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name for node in found]
