"""Which cases a change touches: of the model, the prompt, a tool, a policy (any fixture), or a rubric."""

from cases.document import did_you_mean
from cases.lock import fixtures_under
from evalfarm.contracts.suite import HARNESSES, Case, HarnessName, Suite
from evalfarm.errors import UsageError

KINDS = ("model", "prompt", "tool", "policy", "rubric")
_HOW = "write model, prompt, tool:NAME, policy:FIXTURE or rubric:ID"


def affected_by(suite: Suite, change: str) -> tuple[str, ...]:
    """The ids of the cases that a change touches, in the suite's order.

    `model` and `prompt` touch every case with a query; `tool:NAME` those that expect, forbid or directly call the tool
    or rest on what it returns; `policy:FIXTURE` those that rest on the fixture; `rubric:ID` those judged by it.
    Raises UsageError for what is no change, or touches nothing.
    """
    kind, _, name = change.partition(":")
    if kind not in KINDS or (kind in ("model", "prompt")) == bool(name):
        raise UsageError(f"'{change}' is no change", _HOW)
    chosen = tuple(case.id for case in suite.cases if _touched(suite, case, kind, name))
    if not chosen:
        raise UsageError(f"no case of suite '{suite.suite}' is touched by {change}", _there_is(suite, kind, name))
    return chosen


def harnesses_touched(change: str | None) -> tuple[HarnessName, ...]:
    """The harnesses in which a change can show: without a model neither model nor prompt does. Empty: in all."""
    return tuple(name for name in HARNESSES if name != "direct") if change in ("model", "prompt") else ()


def _touched(suite: Suite, case: Case, kind: str, name: str) -> bool:
    match kind:
        case "tool":
            return name in _tools(suite, case)
        case "policy":
            return name in fixtures_under(suite, case)
        case "rubric":
            return case.rubric == name
        case _:
            return bool(case.turns)


def _tools(suite: Suite, case: Case) -> frozenset[str]:
    resting = {suite.fixtures[fixture].tool for fixture in fixtures_under(suite, case)}
    direct = case.direct.expect.named_tools() | {case.direct.tool} if case.direct else frozenset()
    # Where nothing may be called, any tool's description may tempt the model to.
    forbidden = {made.tool for made in suite.fixtures.values()} if case.expect.no_calls else set()
    return case.expect.named_tools() | direct | resting | forbidden


def _there_is(suite: Suite, kind: str, name: str) -> str:
    match kind:
        case "tool":
            return did_you_mean(name, {tool for case in suite.cases for tool in _tools(suite, case)}, "tools")
        case "policy":
            return did_you_mean(name, suite.fixtures, "fixtures")
        case "rubric":
            return did_you_mean(name, [rubric.id for rubric in suite.rubrics], "rubrics")
        case _:
            return "its cases have no query"
