"""What is planned and what happened: plan, trial, trace, manifest.

A plan is arms × cases × repeats. A trial is an index into it, and everything about the trial follows
from the index by arithmetic, so a plan of a million trials stores nothing per trial.
"""

import hashlib
import random
from functools import cached_property
from typing import Literal

from pydantic import Field, JsonValue

from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.budget import Budget
from evalfarm.contracts.patch import PluginPatch
from evalfarm.contracts.suite import HarnessName, Suite

Isolation = Literal["cell", "harness"]
"""`cell`: our own namespaces around the product; `harness`: the product's own sandbox only."""

HARNESS_TOOLS = "(harness)"
"""In place of a server's name: the tool is the harness's own, as web search. No MCP server can be called so."""

QueueName = Literal["interactive", "nightly"]
"""Whose turn it is where both wait: somebody who waits at a terminal, or a nightly run."""

COUNTED = ("turns", "tool_calls", "served_calls", "requests", "shell_commands", "events")
"""Records of a trace that are counted: one that holds less of them than it did has lost something."""

NO_MODEL = "none"
"""The model's name where no model takes part (`direct`)."""

Outcome = Literal["finished", "gave_up", "timed_out", "crashed", "infra_failed"]
"""How an attempt ended. `gave_up`: the loop's step limit; `crashed`: the harness failed on this input;
`infra_failed`: something around it broke, so it says nothing about the plugin."""

FailureKind = Literal["model", "server", "harness", "preflight", "store", "isolation", "stopped", "internal"]
"""What broke around an attempt that ended as `infra_failed`; `stopped`: its lease was lost, or its run cancelled."""


class Arm(Contract):
    """One column of a study: model × harness × variant, over all cases."""

    model: str
    harness: HarnessName
    variant: Name


class Trial(Contract):
    """One repeat of one case in one arm."""

    index: int
    case: Name
    repeat: int
    arm: Arm
    seed: int  #: 63 bits that follow from what the trial means, not from its place in the plan


class Plan(Contract):
    """Everything a worker needs to run any trial of a run; immutable once stored."""

    run: Name
    suite: Suite
    arms: tuple[Arm, ...] = Field(min_length=1)
    cases: tuple[Name, ...] = Field(min_length=1)
    repeats: int = Field(ge=1)
    seed: int = 0
    isolation: Isolation = "cell"
    files: dict[str, str] = {}  #: path relative to the suite's folder -> digest of its bytes
    executables: tuple[str, ...] = ()  #: the paths among them that are programs
    judges: tuple[str, ...] = ()  #: the models that judge the answers of cases with a rubric; none: nobody does

    @property
    def size(self) -> int:
        """The number of trials."""
        return len(self.arms) * len(self.cases) * self.repeats

    def trial(self, index: int) -> Trial:
        """The trial at an index in 0 … size-1.

        Repeats are outermost, and within a repeat arms and cases are interleaved by a seeded shuffle,
        so that a run stopped early is balanced. Raises IndexError outside the plan.
        """
        if not 0 <= index < self.size:
            raise IndexError(f"trial {index} is not in a plan of {self.size}")
        repeat, place = divmod(index, len(self.arms) * len(self.cases))
        case_at, arm_at = divmod(self._order[place], len(self.arms))
        case, arm = self.cases[case_at], self.arms[arm_at]
        seed = trial_seed(self.suite.suite, case, arm.model, repeat, self.seed)
        return Trial(index=index, case=case, repeat=repeat, arm=arm, seed=seed)

    @property
    def arms_in_order(self) -> tuple[int, ...]:
        """The place of each trial's arm in `arms`, for the trials of one repeat; every repeat has the same."""
        return tuple(place % len(self.arms) for place in self._order)

    @cached_property
    def _order(self) -> list[int]:
        order = list(range(len(self.arms) * len(self.cases)))
        random.Random(self.seed).shuffle(order)
        return order


def trial_seed(suite: str, case: str, model: str, repeat: int, seed: int) -> int:
    """63 bits from a trial's identity: a rerun of the same trial draws the same, two repeats differ.

    The harness and the variant are left out on purpose: a simulated model that slips on a repeat slips
    on it under both, which is what makes a paired comparison of two variants sharp.
    """
    text = "\x1f".join((suite, case, model, str(repeat), str(seed)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


class ToolCall(Contract):
    """One MCP call as one witness saw it."""

    name: str
    arguments: JsonValue = None  #: an object; the raw text where the model's arguments were no JSON object
    result: JsonValue = None  #: the structured content, or the text where the server gave none
    error: str | None = None
    started_s: float = 0.0  #: since the attempt's start
    duration_s: float | None = None
    turn: int = 0
    server: str | None = None  #: whose tool it is; None: the plugin's own server, HARNESS_TOOLS: the harness's
    call_id: str | None = None  #: as the harness numbers it; what is told twice under one number is one call


class ShellCommand(Contract):
    """One command that the model ran through the harness's own shell."""

    command: str
    output: str = ""
    exit_code: int | None = None
    duration_s: float | None = None
    turn: int = 0


class ModelRequest(Contract):
    """One model request as the gateway saw it, over all its tries.

    Token counts are the provider's: `input_tokens` includes the `cached_tokens` among them, and
    `output_tokens` the `reasoning_tokens`. None: the provider did not say.
    """

    started_s: float
    latency_s: float  #: of the last try: first byte sent to last byte received
    waited_s: float = 0.0  #: spent on earlier tries and on waiting between them; no part of the model's latency
    status: int | None  #: HTTP status of the last try; none: no answer came
    tries: tuple[str, ...] = ()  #: what earlier tries met, in order
    error: str | None = None
    response_id: str | None = None
    model: str | None = None  #: as the provider answered, which need not be what was asked
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_write_tokens: int | None = None  #: of the input, newly written to the provider's cache
    side: bool = False  #: no request of the conversation's own: a title, a summary
    cost_usd: float | None = None  #: of this request, where it is told apart from the trace's


class Turn(Contract):
    """One question of the case and the answer it got (empty: none)."""

    query: str
    answer: str = ""


class Telemetry(Contract):
    """Whether the witnesses agree; where they do not, silence proves nothing."""

    complete: bool
    gaps: tuple[str, ...] = ()
    counted: dict[str, int] | None = None  #: what of COUNTED the trace held when it was written down; none: not counted


class Trace(Contract):
    """What was observed in one attempt. Stored whole, graded purely."""

    schema_version: Literal[1] = 1
    run: Name
    trial: Trial
    attempt: int
    session: str | None = None  #: what the harness calls the conversation: Codex's thread; None: it has no name for it
    outcome: Outcome
    failure: str | None = None  #: why it did not finish
    failure_kind: FailureKind | None = None  #: of `infra_failed`: what broke
    turns: tuple[Turn, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()  #: witness 1: the harness's account
    served_calls: tuple[ToolCall, ...] = ()  #: witness 2: the tool gateway's account
    requests: tuple[ModelRequest, ...] = ()  #: witness 3: the model gateway's account
    shell_commands: tuple[ShellCommand, ...] = ()
    telemetry: Telemetry
    events: tuple[JsonValue, ...] = ()  #: the harness's own event stream, as it came
    versions: dict[str, str] = {}
    simulated: bool = False  #: a simulated model took part
    isolation: Isolation = "cell"
    started_at: float  #: seconds since the epoch, the worker's clock
    duration_s: float  #: the attempt, from the open cell to the last answer
    cost_usd: float | None = None  #: None: unknown
    redacted: dict[str, int] = {}  #: kind of secret -> how many were replaced before the trace was stored

    @property
    def counts(self) -> dict[str, int]:
        """How many of each of COUNTED it holds now."""
        return {name: len(getattr(self, name)) for name in COUNTED}

    @property
    def answer(self) -> str:
        """The last turn's answer."""
        return self.turns[-1].answer if self.turns else ""

    @property
    def waited_s(self) -> float:
        """Time spent waiting for limits and retries, which is no latency of the model or the harness."""
        return sum(request.waited_s for request in self.requests)


class Manifest(Contract):
    """What exactly was run: written once, before the first trial."""

    schema_version: Literal[1] = 1
    run: Name
    label: str | None = None
    created_at: float
    evalfarm: str  #: version
    suite: Name
    suite_version: str
    plugin: str | None = None  #: None: a version of evalfarm wrote it that did not say
    plugin_version: str | None = None
    simulated: bool
    synthetic: bool
    isolation: Isolation
    arms: tuple[Arm, ...]
    cases: int
    repeats: int
    seed: int
    planned: int
    filters: dict[str, str] = {}
    queue: QueueName = "interactive"
    budget: Budget | None = None
    patch: PluginPatch | None = None  #: what stood in for the suite's plugin; None: nothing did
    #: What can move a score -> digest: plan, cases, prompts, plugin, grader, prices …; of a variant plugin/VARIANT,
    #: skill/VARIANT/SKILL, tools/VARIANT, and marketplace/VARIANT where Codex is to have it installed.
    digests: dict[str, str]
    versions: dict[str, str]  #: Codex, its SDK, the MCP and OpenAI libraries, Python
    model_transport: str = "https"  #: how Codex reaches the model gateway
