"""Do the harness's account and the tool gateway's agree? Where they do not, silence proves nothing."""

import json
from collections import Counter
from collections.abc import Iterable

from evalfarm.contracts.run import Telemetry, ToolCall


def compare(reported: Iterable[ToolCall], served: Iterable[ToolCall], *, cut_off: bool) -> Telemetry:
    """Match what the harness reported with what the tool gateway served, call by call.

    Calls match by tool and arguments, in any order. A call that the harness itself refused (an unknown tool,
    arguments that are no JSON) never reaches the server and need not match. `cut_off`: the harness was stopped in
    mid-turn, so the last calls it made may be missing from its account without a contradiction.
    """
    reported, served = list(reported), list(served)
    told = Counter(_key(call) for call in reported)
    seen = Counter(_key(call) for call in served)
    completed = Counter(_key(call) for call in reported if call.error is None)
    gaps = (
        []
        if cut_off
        else [f"the tool gateway served {_say(call)}, which the harness did not report" for call in seen - told]
    )
    gaps += [f"the harness reports {_say(call)}, which never reached the tool gateway" for call in completed - seen]
    return Telemetry(complete=not gaps, gaps=tuple(sorted(gaps)))


def _key(call: ToolCall) -> tuple[str, str]:
    return call.name, json.dumps(call.arguments, sort_keys=True)


def _say(key: tuple[str, str]) -> str:
    return f"{key[0]}({key[1]})"
