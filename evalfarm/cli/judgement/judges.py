"""Whether judges can be asked at all: what is told before anything is started."""

from collections.abc import Iterable

from cases.policies import is_simulated
from cases.policies.judges import check_judge_name
from evalfarm.contracts.suite import Suite
from evalfarm.errors import ModelUnavailable, UsageError
from evalfarm.prices import load_prices
from evalfarm.settings import Settings


def check_judges(settings: Settings, suite: Suite, models: Iterable[str]) -> None:
    """Raise before anything is started where a judge cannot be asked: UnknownName, UsageError or ModelUnavailable.

    So too where its cost is bounded and its price is not known.
    """
    prices, bounded = load_prices(settings.prices), suite.judging.max_cost_usd is not None
    for model in models:
        if bounded and prices.cost_usd(model, input_tokens=1, cached_tokens=0, output_tokens=1) is None:
            raise UsageError(
                f"the cost of the judges is bounded, and the price of {model!r} is not known",
                "add it to a price table (EVALFARM_PRICES), or take `judging.max_cost_usd` out of the suite",
            )
        if is_simulated(model):
            check_judge_name(model)
            reader_file(suite)
        elif settings.openai_api_key is None:
            raise ModelUnavailable(
                f"the judge {model!r} is a real model, and OPENAI_API_KEY is not set",
                "set OPENAI_API_KEY (and OPENAI_BASE_URL for another provider), or use a simulated judge",
            )


def reader_file(suite: Suite) -> str:
    """The suite's file of how a simulated judge reads. Raises UsageError where there is none."""
    if suite.simulation is None or suite.simulation.judge is None:
        raise UsageError(
            f"suite {suite.suite!r} says nothing of how a simulated judge reads its answers",
            "add `simulation.judge` to the suite (docs/guides/judging.md), or name a real model",
        )
    return suite.simulation.judge
