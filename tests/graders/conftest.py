"""Builders that the grader's tests share: a case of a small catalog, and traces over it."""

from collections.abc import Callable
from typing import Any

import pytest

from evalfarm.contracts.run import Telemetry, ToolCall, Trace, Trial, Turn
from evalfarm.contracts.suite import Case, Suite

SERIES = "LNS14000000"
RESOLVED = {"results": [{"indicator": "unemployment", "candidates": [{"series_id": SERIES, "confidence": 1.0}]}]}
OBSERVED = {"series": [{"series_id": SERIES, "error": None, "observations": [4.1]}]}


@pytest.fixture(scope="session")
def resolve() -> ToolCall:
    """A call that resolved the indicator."""
    return ToolCall(name="resolve", arguments={"indicators": [{"indicator": "unemployment"}]}, result=RESOLVED)


@pytest.fixture(scope="session")
def fetch() -> ToolCall:
    """A call that fetched the expected series."""
    return ToolCall(name="fetch_data", arguments={"series_ids": [SERIES]}, result=OBSERVED)


@pytest.fixture(scope="session")
def headline() -> Case:
    """A case that has both forms and every kind of expectation."""
    return Case.model_validate(
        {
            "id": "headline",
            "query": "What is the unemployment rate?",
            "expect": {
                "tools": ["resolve", "fetch_data"],
                "arguments": [{"tool": "fetch_data", "at": "series_ids[*]", "exactly": [SERIES]}],
                "results": [
                    {
                        "tool": "fetch_data",
                        "at": "series[*]",
                        "without": "error",
                        "field": "series_id",
                        "includes": [SERIES],
                    }
                ],
            },
            "direct": {
                "tool": "resolve",
                "arguments": {"indicators": [{"indicator": "unemployment"}]},
                "expect": {
                    "tools": ["resolve"],
                    "results": [
                        {
                            "tool": "resolve",
                            "at": "results[*].candidates[*]",
                            "highest": "confidence",
                            "field": "series_id",
                            "exactly": [SERIES],
                        }
                    ],
                },
            },
        }
    )


@pytest.fixture(scope="session")
def catalog(headline: Case) -> Suite:
    """The suite of that one case."""
    return suite_of(headline)


@pytest.fixture(scope="session")
def suite_with() -> Callable[..., Suite]:
    """Makes a suite of the cases given, with whatever else is said of it."""
    return suite_of


def suite_of(*cases: Case, **more: Any) -> Suite:
    told = {"suite": "catalog", "version": "1", "plugin": {"name": "Catalog"}, "server": {"python": "server.py"}}
    return Suite.model_validate({**told, "cases": [case.model_dump() for case in cases], **more})


@pytest.fixture(scope="session")
def traced() -> Callable[..., Trace]:
    """Makes a finished trace in which both witnesses saw the same calls, with whatever is said otherwise."""

    def make(*calls: ToolCall, harness: str = "loop", case: str = "headline", **changes: Any) -> Trace:
        trial = Trial.model_validate(
            {
                "index": 0,
                "case": case,
                "repeat": 0,
                "arm": {"model": "sim-careful", "harness": harness, "variant": "plain"},
                "seed": 1,
            }
        )
        told: dict[str, Any] = {
            "run": "r1",
            "trial": trial,
            "attempt": 1,
            "outcome": "finished",
            "turns": (Turn(query="What is the unemployment rate?", answer="4.1 %"),),
            "tool_calls": calls,
            "served_calls": calls,
            "telemetry": Telemetry(complete=True),
            "started_at": 1000.0,
            "duration_s": 2.0,
        }
        return Trace(**{**told, **changes})

    return make
