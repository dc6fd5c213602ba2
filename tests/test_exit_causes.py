from headrace.exit_causes import ExitCause
from headrace.store.engine_file.engine_schema import RunState

GOES_ON = {ExitCause.PREEMPTED, ExitCause.PARKED, ExitCause.UNDECIDED}


def test_the_causes_that_end_a_run_are_its_final_states_on_disk():
    final = {cause.value for cause in ExitCause if cause not in GOES_ON}
    assert final == {state.value for state in RunState if state.is_final}
