"""One look as the page that Prometheus reads. Pure."""

from collections.abc import Iterator

from evalfarm import __version__
from evalfarm.exporter.catalogue import ARMS_LEFT_OUT, BUILD, SOURCE_TIME, SOURCE_UP
from evalfarm.exporter.families import Sample, rendered
from evalfarm.exporter.farm import of_farm
from evalfarm.exporter.labels import MOST_ARMS, bound_of
from evalfarm.exporter.nights import of_judges, of_nights
from evalfarm.exporter.owing import of_schedules
from evalfarm.exporter.seen import Seen, Source
from evalfarm.exporter.totals import of_totals

SOURCES: tuple[Source, ...] = ("ledger", "store")


def page(seen: Seen, most_arms: int = MOST_ARMS) -> str:
    """The text of /metrics."""
    return rendered(samples(seen, most_arms))


def samples(seen: Seen, most_arms: int = MOST_ARMS) -> Iterator[Sample]:
    """Everything that is told of a look."""
    bound = bound_of(seen, most_arms)
    yield Sample(BUILD, 1.0, (__version__,))
    for source in SOURCES:
        yield Sample(SOURCE_UP, float(source not in seen.failed), (source,))
        if source in seen.read_at:
            yield Sample(SOURCE_TIME, seen.read_at[source], (source,))
    yield Sample(ARMS_LEFT_OUT, bound.left_out)
    yield from of_nights(seen.nights, bound)
    yield from of_schedules(seen.owed, bound)
    yield from of_judges(seen.judges)
    yield from of_totals(seen.took, bound)
    if seen.farm is not None:
        yield from of_farm(seen, seen.farm, bound)
