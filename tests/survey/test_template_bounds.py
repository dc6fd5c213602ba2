"""What a text may take to write, whoever wrote it: no bomb of memory or time, and ordinary texts as ever."""

import resource
import time

import minijinja
import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, Survey
from headrace.errors import SurveyError
from headrace.survey.templates import CannotRender, Template

DATA = {
    "city": "Oslo",
    "list": ["a", "b"],
    "n": 3,
    "x": 1.5,
    "whole": 2.0,
    "none": None,
    "d": {"a": 1, "b": [True]},
    "rows": [{"name": "p", "v": 1.0}, {"name": "q", "v": 2.5}],
    "big": "y" * 1_000_000,
    "lines": "one\ntwo",
    "quote": 'a "b" \\ c',
}

ORDINARY = [
    "{{ s.city }} and {{- s.n -}} !",
    "{{ s.city|upper }} {{ s.list|join(', ') }} {{ s.list|join }}",
    "{{ s.n * 2 }} {{ s.x*100 }} {{ 2 * s.whole }} {{ -s.n*-2 }} {{ (s.n+1)*(s.n-1) }} {{ 2 ** 3 * 2 }}",
    "{{ '=' * 5 }}|{{ 3 * \"-\" }}|{{ 'a' ~ '=' * 2 ~ 'b' }}",
    "{{ s.rows|map(attribute='name')|join('; ') }} {{ s.list|map('upper')|list }}",
    "{% for r in s.rows -%}\n  {{ r.name }}={{ r.v }}\n{%- endfor %} {%- for i in [1] +%} a {% endfor %}",
    "{% for r in s.rows %}{{ loop.index }}{% if r.v > 1 %}!{% elif r.v %}?{% else %}.{% endif %}{% endfor %}",
    "{% for k, v in s.d|items %}{{ k }}:{{ v }},{% else %}none{% endfor %}",
    "{% raw %}{{ x }} {% for %}{% endraw %} {# c {{ {% #}",
    "{% set a = s.city ~ '!' %}{{ a }}{% set b %}[{{ a }}]{% endset %}{{ b }}",
    "{{ s.d|tojson }} {{ s.d|tojson(indent=2) }} {{ s.whole|tojson }} {{ s.quote|tojson }}",
    "{{ {'a':{'b':1}} }} {{ '}}' }} {{ s['city'] }} {{ s.list[0] }} {{ s.city[1:] }} {{ '%}' }}",
    "{{ s.list|first }} {{ s.list|length }} {{ s.list|sort|reverse|list }} {{ s.list }} {{ range(3)|list }}",
    "{{ s.x|round(2) }} {{ '%05.2f'|format(s.x) }} {{ 'a-b'|split('-') }} {{ s.lines|indent(4) }}",
    "{{ s.rows|selectattr('v','gt',1)|map(attribute='v')|sum }} {{ s.list|batch(1)|list }}",
    "{{ 'a' if s.n > 2 else 'c' }} {{ s.city|replace('s','zz') }} {{ s.none }} {{ s.none|default('d', true) }}",
    "{{ 7 // 2 }} {{ 7 % 4 }} {{ 1 }} {{ 1.0 }} {{ true }} {{ s.n in [1, 3] }} {{ s.city is string }}",
    "{{ s.big|length }} {{ s.big|truncate(length=10) }} {{ s.list|unique|list }} {{ s.city|list }}",
    "{{ '{{' }} { % } {{ s.city|default('x')|title }} {% filter upper %}abc{% endfilter %}",
]

BOMBS = [
    "{{ 'x'|indent(2000000000) }}",
    "{% filter indent(2000000000) %}x{% endfilter %}",
    "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "{% for c in s.big %}{% for d in s.big %}{% endfor %}{% endfor %}",
    "{% for i in range(100000) %}{{ s.big }}{% endfor %}",
    "{% for i in range(100000) %}" + "t" * 100_000 + "{% endfor %}",
    "{% set a %}{% for i in range(100000) %}{{ s.big }}{% endfor %}{% endset %}",
    "{% set a='xxxxxxxxxx' %}" + "{% set a = a ~ a %}" * 40 + "{{ a }}",
    "{% set a=['xxxxxxxxxx'] %}" + "{% set a = [a,a] %}" * 40 + "{{ a }}",
    "{% with a=s.big %}" + "{% with a=a~a %}" * 40 + "{{ a }}" + "{% endwith %}" * 41,
    "{% set ns=namespace(a='x') %}{% for i in range(60) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}",
    "{% macro f(x) %}{{ f(x ~ x) }}{% endmacro %}{{ f('a') }}",
    "{% for x in [[1]] recursive %}{{ loop([x, x]) }}{% endfor %}",
    "{{ 'x' * 100000000 }}",
    "{{ s.city * 100000000 }}",
    "{{ 100000000 * s.city }}",
    "{{ ([1] * 1000000000)|join }}",
    "{{ (1, 2) * 1000000000 }}",
    "{{ s.big|replace('y', s.big) }}",
    "{{ s.big|list|join(s.big) }}",
    "{{ range(100000)|map('default', s.big, true)|join }}",
    "{{ range(100000)|map('string')|map('replace', '1', s.big)|list }}",
    "{{ '%1000000000d'|format(1) }}",
    "{{ '%*d'|format(1000000000, 1) }}",
    "{{ s.list|batch(1000000000, 'x') }}",
    "{{ s.list|slice(1000000000, 'x') }}",
    "{{ s.big|wordwrap(width=1, wrapstring=s.big) }}",
    "{{ s.quote" + "|tojson" * 60 + " }}",
    "{{ s.city" + "|list|upper" * 60 + " }}",
    "{{ s.city" + "|batch(1)|join" * 60 + " }}",
    "{{ " + "[" * 40 + "s.quote" + " ~ '']" * 40 + " }}",
    "{{ s.d|tojson(indent=1000000000) }}",
    "{{ s.d|tojson(s.n) }}",
    "{{ [s.d]|map('tojson', 1000000000)|list }}",
    "{{ s.big }}" * 3000,
]

# Each of these overflowed the stack of the template library, and the process was gone.
CRASHES = [
    "{{ s" + "|abs" * 50_000 + " }}",
    "{{ " + "-" * 50_000 + "1 }}",
    "{{ " + "not " * 50_000 + "1 }}",
    "{{ 1" + "~1" * 50_000 + " }}",
    "{{ s" + ".b" * 50_000 + " }}",
    "{{ s" + "[0]" * 50_000 + " }}",
    "{% if s %}" + "{% elif s %}" * 50_000 + "{% endif %}",
    "{{ " + "(" * 50_000 + "1" + ")" * 50_000 + " }}",
    "{% if s %}" * 50_000 + "{% endif %}" * 50_000,
]


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_is_written_as_the_template_library_writes_it(text: str):
    plain = minijinja.Environment(undefined_behavior="strict", pycompat=False, keep_trailing_newline=True)
    assert Template(text, "here").render({"s": DATA}) == plain.render_str(text, s=DATA)


@pytest.mark.parametrize("text", BOMBS, ids=lambda text: text[:50])
def test_a_text_that_would_take_gigabytes_or_hours_is_refused(text: str):
    before_s, before_bytes = time.process_time(), _peak_bytes()
    with pytest.raises((SurveyError, CannotRender)):
        Template(text, "here").render({"s": DATA})
    assert time.process_time() - before_s < 20
    assert _peak_bytes() - before_bytes < 400_000_000


@pytest.mark.parametrize("text", CRASHES, ids=lambda text: text[:20])
def test_a_text_that_would_overflow_the_stack_is_refused(text: str):
    with pytest.raises(SurveyError):
        Template(text, "here").render({"s": DATA})


def test_a_bomb_in_the_survey_is_an_error_before_anything_runs(tmp_path):
    text = "{% macro f(x) %}{{ f(x ~ x) }}{% endmacro %}{{ f('a') }}"
    with pytest.raises(SurveyError, match=r"uses {% macro %}.*Use names, filters, if, for and set"):
        Survey([QuestionFreeText(question_name="q", question_text=text)])


def test_a_bomb_in_one_agents_data_is_that_interviews_failure(tmp_path):
    text = "{{ 'x'|indent(agent.width) }}"
    agents = AgentList([Agent({"width": 4}), Agent({"width": 2_000_000_000}), Agent({"width": 8})])
    job = Survey([QuestionFreeText(question_name="q", question_text=text)]).by(agents).by(Model("test"))
    with job.run(tmp_path / "a.run", memory="+200MB") as results:
        (failed,) = results.failed()
        assert len(results) == 3
        assert failed.ordinal == 1
        assert "too large to write" in failed.message


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
