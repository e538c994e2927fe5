"""Where a suite's base policy comes from: a script in the suite's file, or a Python file beside it."""

import hashlib
import importlib.util
import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import ParamSpec, TypeVar

from cases.policies.seen import Answer, Call, Calls, Move, Policy, Seen, plain_tool
from evalfarm.contracts.suite import ScriptLine, Simulation
from evalfarm.errors import SuiteError

P = ParamSpec("P")
T = TypeVar("T")

_SHAPE = "define POLICY = …, an object with the method move(seen, draw), as cases.policies.Policy describes"


@dataclass(frozen=True)
class Scripted:
    """Follows the first line whose `when` is found in the question: its calls one by one, then its answer."""

    lines: tuple[ScriptLine, ...]

    def move(self, seen: Seen, draw: random.Random) -> Move:  # noqa: ARG002 - it leaves nothing to chance
        """The line's next call that has no result yet, or its answer."""
        turn = seen.turn
        for line in self.lines:
            if re.search(line.when, turn.question, re.IGNORECASE):
                tools = {plain_tool(call.tool) for call in line.calls}
                made = sum(plain_tool(result.name) in tools for result in turn.results)
                if made < len(line.calls):
                    return Calls((Call(line.calls[made].tool, dict(line.calls[made].arguments)),))
                return Answer(line.answer)
        return Answer("I have no line in my script for this question.")


def load_base(simulation: Simulation, folder: Path) -> Policy:
    """A suite's base policy; a policy's path is relative to the suite's folder.

    Raises SuiteError: a `when` that is no regular expression, no such file, a file that does not import, or
    one without a usable POLICY.
    """
    if simulation.policy is None:
        for at, line in enumerate(simulation.script):
            _check_pattern(line.when, at)
        return Scripted(simulation.script)
    path = folder / simulation.policy
    if not path.is_file():
        raise SuiteError(f"{path}: simulation.policy names a file that does not exist", hint=f"create it and {_SHAPE}")
    policy: object = getattr(imported(path), "POLICY", None)
    if not callable(getattr(policy, "move", None)):
        raise SuiteError(f"{path}: the file defines no POLICY that can move", hint=_SHAPE)
    found: Policy = policy  # type: ignore[assignment]  # a user's object: only its method could be checked
    return found


def load_agents(simulation: Simulation, folder: Path) -> dict[str, Policy]:
    """The further simulated models that a suite's policy file defines as `AGENTS`, by name.

    They are run as they are, not as a base. Raises SuiteError for a name that does not begin with `sim-` or that every
    suite has, and for what cannot move.
    """
    if simulation.policy is None:
        return {}
    path = folder / simulation.policy
    agents: object = getattr(imported(path), "AGENTS", {})
    if not isinstance(agents, dict):
        raise SuiteError(f"{path}: AGENTS is no dict", hint='write AGENTS = {"sim-NAME": …}')
    for name, policy in agents.items():
        if not str(name).startswith("sim-") or not callable(getattr(policy, "move", None)):
            raise SuiteError(f"{path}: AGENTS[{name!r}] is no simulated model", hint=f'name it "sim-…"; {_SHAPE}')
    return agents


def _check_pattern(pattern: str, at: int) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise SuiteError(
            f"simulation.script[{at}].when is no regular expression: {error}: {pattern!r}",
            hint="escape characters such as ( ) [ ] ? * + with a backslash, or write plain words",
        ) from error


def imported(path: Path, what: str = "policy") -> ModuleType:
    """A user's Python file as a module; `what` is what errors call it. Raises SuiteError when it does not import."""
    name = f"evalfarm_policy_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SuiteError(f"{path}: a {what} is a Python file", hint="give it a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and pickle look for the classes that it defines
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's file raises, it is the suite that does not load
        raise SuiteError(
            f"{path}: the {what} does not import: {type(error).__name__}: {error}",
            hint=f"run `python {path}` to see where",
        ) from error
    return module


def blamed(function: Callable[P, T], name: str) -> Callable[P, T]:
    """The same function of a user's file; whatever it raises is a SuiteError that names it."""

    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # whatever it raises, the suite is at fault
            raise SuiteError(f"{name} raised {type(error).__name__}: {error}", hint="mend the function") from error

    return called
