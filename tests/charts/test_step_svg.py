from xml.etree import ElementTree as ET

from headrace.charts.step_svg import MOST_STEPS, RunMark, StepBar, StepChart, step_svg


def test_steps_are_drawn_as_bars_with_marks_and_every_text_is_escaped():
    bars = (StepBar("<b>first", 0.0, 2.0, is_exact=True), StepBar("second", 2.0, None, is_exact=False))
    chart = StepChart(title="<i>run", bars=bars, marks=(RunMark(1.0, "preempted", "memory & more"),), seconds=4.0)
    picture = step_svg(chart)
    ET.fromstring(picture)
    assert "&lt;b&gt;first: 2" in picture
    assert "not finished" in picture
    assert "memory &amp; more" in picture
    assert "<b>" not in picture


def test_where_a_run_was_told_to_stop_is_a_line_across_its_steps():
    bars = (StepBar("read", 0.0, 4.0, is_exact=False),)
    for what, lines in (("preempted", 1), ("retried", 0)):
        picture = step_svg(StepChart(title="t", bars=bars, marks=(RunMark(1.0, what),), seconds=5.0))
        assert picture.count('stroke-dasharray="3 3"') == lines


def test_a_picture_is_bounded_whatever_a_run_has_done():
    bars = tuple(StepBar(f"step {n}", float(n), n + 1.0, is_exact=False) for n in range(5_000))
    marks = tuple(RunMark(float(n), f"kind {n % 50}") for n in range(20_000))
    picture = step_svg(StepChart(title="long", bars=bars, marks=marks, seconds=5_000.0))
    assert picture.count("step 4") <= 2 * MOST_STEPS
    assert len(picture) < 1_000_000
