from headrace.cli.demo.people import people_job


def test_the_demo_asks_sixty_interviews_of_the_local_model_without_starting_it() -> None:
    job = people_job()
    assert len(job) == 60
    assert {question.kind for question in job.survey.questions} == {"multiple_choice", "linear_scale", "free_text"}
    assert [model.service_name for model in job.models] == ["local"]
