"""One model call per sample, graded by substring: the benchmark's work as a task of inspect_ai, which runs this."""

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


@task
def bench(cases: int) -> Task:
    """As many cases as asked for."""
    names = [f"case-{number:03d}" for number in range(cases)]
    asked = [Sample(id=name, input=f"Case {name}: what is the answer? It is 42.", target="42") for name in names]
    return Task(dataset=MemoryDataset(asked), solver=generate(), scorer=includes())
