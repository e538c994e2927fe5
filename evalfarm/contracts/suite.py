"""What is asked: a suite of cases over one plugin, with what is expected of each level.

A suite file is this model written as YAML; `cases/loader.py` loads it and turns whatever does not
fit into an error with file and line.
"""

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from evalfarm.contracts.answer import (
    BOTH_MUST_PASS,
    Conclusion,
    Fact,
    Fixture,
    FixtureName,
    Judgement,
    Pattern,
    Reference,
    Rubric,
    WholeVerdictTable,
)
from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.contracts.route import Expectation

HarnessName = Literal["direct", "loop", "codex"]
HARNESSES: tuple[HarnessName, ...] = ("direct", "loop", "codex")


class Server(Contract):
    """The MCP server under test: exactly one of a Python file, a stdio command, or an HTTP URL.

    A Python file is run as a program that speaks MCP over stdio. A command whose first word is `python` is run
    with the worker's own interpreter, so that it finds what is installed beside evalfarm.
    """

    python: str | None = None  #: path of a file, relative to the suite's, that defines a FastMCP server
    command: tuple[str, ...] | None = None  #: argv of a server that speaks MCP over stdio
    url: str | None = None  #: address of a running server that speaks streamable HTTP
    env: dict[str, str] = {}  #: environment of the server's process, in the manifest
    env_from: tuple[str, ...] = ()  #: names whose values come from the worker's environment, never stored
    stateful: bool = False  #: true: a fresh server process for every attempt
    startup_timeout_s: float = Field(default=20.0, gt=0)

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> Self:
        if sum(way is not None for way in (self.python, self.command, self.url)) != 1:
            raise ValueError("give exactly one of python, command and url")
        if self.url is not None and (self.env or self.env_from or self.stateful):
            raise ValueError("a server reached by url has no env, env_from or stateful: evalfarm does not start it")
        return self


class Plugin(Contract):
    """The plugin as a product packages it around the server."""

    name: Name
    version: str = "1.0.0"
    description: str = ""
    path: str | None = (
        None  #: a Codex plugin folder (`.codex-plugin/plugin.json`, `.mcp.json`, skills); none: one is made
    )
    server: Name | None = (
        None  #: the entry of the folder's `.mcp.json` that is the server under test; none: the plugin's name
    )


class Variant(Contract):
    """One version of the plugin under test, as a difference from the suite's own."""

    description: str = ""
    env: dict[str, str] = {}  #: added to the server's environment
    server: Server | None = None  #: replaces the suite's server
    plugin_path: str | None = None  #: replaces the plugin's folder


class DirectCall(Contract):
    """A case's structured form: one tool call, and what its result must hold."""

    tool: Name
    arguments: dict[str, JsonValue] = {}
    expect: Expectation = Expectation()


def _query_in_schema(schema: dict[str, Any]) -> None:
    schema["properties"]["query"] = {"type": "string", "description": "Short for `turns` with this one text."}


class Case(Contract):
    """One question in its two forms, with what is expected of each.

    In YAML `query: text` is short for `turns: [text]`; several turns are one conversation.
    """

    model_config = ConfigDict(json_schema_extra=_query_in_schema)

    id: Name
    turns: tuple[str, ...] = ()
    expect: Expectation = Expectation()
    direct: DirectCall | None = None
    tags: dict[Name, str] = {}
    family: Name | None = None  #: cases of one template or page, not independent of each other; none: on its own
    category: Name | None = None  #: what kind of case it is; one of the suite's `categories`
    fixture_version: str = "1"  #: advanced whenever what is asked, what is expected or a fixture under it changes
    facts: tuple[Fact, ...] = ()  #: what the answer must mean; none: the answer is not graded by rules
    reference: Reference | None = None
    rubric: Name | None = None  #: one of the suite's `rubrics`, for a judge

    @model_validator(mode="before")
    @classmethod
    def _query_is_one_turn(cls, data: Any) -> Any:
        if isinstance(data, dict) and "query" in data:
            if "turns" in data:
                raise ValueError("give query or turns, not both")
            data = {**data, "turns": [data["query"]]}
            del data["query"]
        return data

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if not self.turns and self.direct is None:
            raise ValueError("give a query (or turns), a direct call, or both")
        if any(not turn.strip() for turn in self.turns):
            raise ValueError("a turn is empty")
        for fact in self.facts:
            if fact.turn is not None and fact.turn > len(self.turns):
                raise ValueError(f"fact '{fact.id}' is about turn {fact.turn}, and the case has {len(self.turns)}")
        ids = [fact.id for fact in self.facts]
        if repeated := next((one for at, one in enumerate(ids) if one in ids[:at]), None):
            raise ValueError(f"two facts are called '{repeated}'")
        return self


class LoopOptions(Contract):
    """How the suite wants the bare function-calling loop set up."""

    system_prompt: str = ""
    tool_rounds: int = Field(default=4, ge=1, le=100)  #: rounds of tool calls before the loop gives up
    server_instructions: bool = False  #: add the server's `instructions` to the prompt


class ScriptLine(Contract):
    """One line of a simulated model's script: when the question matches, make these calls, then answer."""

    when: str  #: a regular expression searched in the last question, case ignored
    calls: tuple[DirectCall, ...] = ()
    answer: str


class Simulation(Contract):
    """How the simulated models behave on this suite; they never see what is expected.

    Exactly one of a Python file beside the suite that defines `POLICY`, or a script.
    """

    policy: str | None = None
    script: tuple[ScriptLine, ...] = ()
    judge: str | None = None  #: a Python file beside the suite that defines `READER`, for the simulated judges

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.policy is None) == (not self.script):
            raise ValueError("give exactly one of policy and script")
        return self


class JudgeOptions(Contract):
    """What the judges of a run may take, apart from what its trials take."""

    concurrency: int = Field(default=8, ge=1, le=1000)  #: answers at the judges at a time
    max_cost_usd: float | None = Field(default=None, gt=0)  #: no further answer goes to them beyond it; none: no bound


class Suite(Contract):
    """A versioned set of cases with the plugin they test."""

    suite: Name
    version: str
    description: str = ""
    synthetic: bool = False  #: the data behind the server is made up; every report says so
    plugin: Plugin
    server: Server
    variants: dict[Name, Variant] = Field(default={"plain": Variant()}, min_length=1)
    loop: LoopOptions = LoopOptions()
    simulation: Simulation | None = None
    attempt_timeout_s: float = Field(default=300.0, gt=0)
    files: tuple[str, ...] = ()  #: further files that the server or the policy reads
    fixtures: dict[FixtureName, Fixture] = {}  #: what the server answers, by name, for facts to rest on
    fixtures_from: str | None = None  #: a JSON file beside the suite that holds `fixtures`, for the server to read too
    conclusions: dict[Name, Conclusion] = {}
    judgements: dict[Name, Judgement] = {}
    categories: dict[Name, str] = {}  #: name -> what such cases are about
    rubrics: tuple[Rubric, ...] = ()
    judging: JudgeOptions = JudgeOptions()
    answer_functions: str | None = None  #: a Python file beside the suite with the functions that facts name
    verdict: WholeVerdictTable = BOTH_MUST_PASS
    redact: dict[Name, Pattern] = {}  #: kind of secret -> what it looks like; replaced before anything is stored
    conversations: ConversationRules = ConversationRules()  #: added to the rules by which conversations are scored
    cases: tuple[Case, ...] = Field(min_length=1)

    def case(self, case_id: str) -> Case:
        """The case with this id; KeyError when there is none."""
        for case in self.cases:
            if case.id == case_id:
                return case
        raise KeyError(case_id)

    def server_of(self, variant: str) -> Server:
        """The server a variant runs: the suite's or the variant's own, with the variant's environment."""
        chosen = self.variants[variant]
        server = chosen.server or self.server
        return server.model_copy(update={"env": {**server.env, **chosen.env}}) if chosen.env else server
