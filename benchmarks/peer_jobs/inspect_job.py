"""The job in Inspect AI: a task of samples, its own solver and scorer, one log file."""

import inspect_ai
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import exact
from inspect_ai.solver import generate

COUNT, IN_FLIGHT = 1000, 64

samples = [Sample(id=f"s{n}", input=f"How many words has letter {n}?", target="3") for n in range(COUNT)]
(log,) = inspect_ai.eval(
    Task(dataset=samples, solver=generate(), scorer=exact()),
    model="openai/bench",
    model_args={"responses_api": False},
    max_connections=IN_FLIGHT,
    max_samples=IN_FLIGHT,
    display="plain",
    log_dir="logs",
)
assert log.status == "success"
assert log.results is not None
assert log.results.completed_samples == COUNT
assert log.results.scores[0].metrics["mean"].value == 1.0
