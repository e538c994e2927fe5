"""What a metric is, and the text that Prometheus reads (exposition format 0.0.4)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["gauge", "counter"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric that can be told: a name, what it says, and the labels that it has, all of them, always."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One value. `labels` are the metric's, in its order."""

    metric: Metric
    value: float
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.metric.labels):
            raise ValueError(f"{self.metric.name} has the labels {self.metric.labels}, not {self.labels}")


def rendered(samples: Iterable[Sample]) -> str:
    """The samples, metric by metric in the order in which each is first told. Raises ValueError for one told twice."""
    by_metric: dict[Metric, dict[tuple[str, ...], float]] = {}
    for sample in samples:
        told = by_metric.setdefault(sample.metric, {})
        if sample.labels in told:
            raise ValueError(f"{sample.metric.name}{sample.labels} is told twice")
        told[sample.labels] = sample.value
    return "".join(_family(metric, told) for metric, told in by_metric.items())


def _family(metric: Metric, told: Mapping[tuple[str, ...], float]) -> str:
    head = f"# HELP {metric.name} {_escaped(metric.help)}\n# TYPE {metric.name} {metric.kind}\n"
    return head + "".join(f"{metric.name}{_braced(metric, labels)} {value!r}\n" for labels, value in told.items())


def _braced(metric: Metric, labels: tuple[str, ...]) -> str:
    pairs = (
        f'{name}="{_escaped(value).replace(chr(34), chr(92) + chr(34))}"'
        for name, value in zip(metric.labels, labels, strict=True)
    )
    return f"{{{','.join(pairs)}}}" if labels else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
