"""The three levels at which one case can run. Each is one coroutine, `drive(attempt) -> Ending`.

    direct   the case's structured input straight to the tool; no model
    loop     a small function-calling loop over the Responses API
    codex    the real Codex with the plugin installed

A harness writes what it sees into the attempt's notes as it goes, so that a crash or a timeout loses nothing.
What breaks around it (no server, no binary, an outage) it raises as InfrastructureError; what the agent does
wrong is an Ending.
"""

from dataclasses import dataclass, field

from pydantic import JsonValue

from evalfarm.contracts.run import FailureKind, Outcome, ShellCommand, ToolCall, Trial, Turn
from evalfarm.contracts.suite import Case, Suite
from worker.gateways.model_gateway import ModelGateway
from worker.gateways.tool_gateway import ToolGateway


@dataclass
class Notes:
    """What the harness itself reports, as it goes: the first witness."""

    turns: list[Turn] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    shell_commands: list[ShellCommand] = field(default_factory=list)
    events: list[JsonValue] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    session: str | None = None  #: what the harness itself calls the conversation
    begun_s: dict[str, float] = field(default_factory=dict)  #: the harness's id of a step -> since the attempt's start

    def ask(self, query: str) -> int:
        """Open a turn; its number is what calls of this turn are recorded under."""
        self.turns.append(Turn(query=query))
        return len(self.turns) - 1

    def answer(self, text: str) -> None:
        """The open turn's answer; a later text replaces an earlier one."""
        self.turns[-1] = Turn(query=self.turns[-1].query, answer=text)


@dataclass
class OpenAttempt:
    """What a harness is given: the case, the two gateways, and a place for its notes."""

    suite: Suite
    case: Case
    trial: Trial
    tools: ToolGateway
    model: ModelGateway | None  #: None at `direct`
    started: float  #: time.monotonic() at the attempt's start
    notes: Notes = field(default_factory=Notes)


@dataclass(frozen=True)
class Ending:
    """How the harness's part ended."""

    outcome: Outcome
    failure: str | None = None
    kind: FailureKind | None = None  #: of `infra_failed`: what broke


FINISHED = Ending("finished")
