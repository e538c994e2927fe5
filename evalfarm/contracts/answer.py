"""What an answer must mean, what that rests on, and what labels add up to: the answer's side of a suite.

A fixture is one fixed response of the plugin's server. A citation names a field of one, as in
`DEMO-102.final_sale`, or is the word `request`: then what is said rests on what the user asked.
"""

import itertools
import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from evalfarm.contracts.base import Contract, Name

REQUEST = "request"
"""The citation of what rests on the user's own words rather than on a fixture."""

FixtureName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]
_CITATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(\.[^.\[\]]+)+")


def _reads_as_citation(text: str) -> str:
    if text != REQUEST and not _CITATION.fullmatch(text):
        raise ValueError(f"{text!r} cites nothing: write FIXTURE.FIELD, as in DEMO-102.final_sale, or {REQUEST}")
    return text


def _reads_as_pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return text


Citation = Annotated[str, AfterValidator(_reads_as_citation)]
Pattern = Annotated[str, AfterValidator(_reads_as_pattern)]
"""A regular expression, searched with case ignored."""


class Fixture(Contract):
    """One fixed response of the server: the evidence that facts rest on."""

    tool: Name
    arguments: dict[str, JsonValue]
    result: dict[str, JsonValue]


class Conclusion(Contract):
    """A yes/no question that answers settle, and the words by which they do.

    A phrase for yes that is denied in its own clause means no. Questions, conditions and what the user is said to say
    conclude nothing. An answer that bears on the question in other words is INCONCLUSIVE where it must conclude.
    """

    asks: str  #: the question, for people and for a judge
    yes: tuple[Pattern, ...] = Field(min_length=1)
    no: tuple[Pattern, ...] = ()
    about: tuple[Pattern, ...] = ()  #: what every statement that bears on it holds; none: any statement may
    outright: bool = False  #: the user's questions are this one, so that a bare yes or no answers it


FactKind = Literal["number", "date", "identifier", "concludes", "asks_for", "unavailable", "executed", "function"]
FACT_KINDS: tuple[FactKind, ...] = (
    "number",
    "date",
    "identifier",
    "concludes",
    "asks_for",
    "unavailable",
    "executed",
    "function",
)


class Fact(Contract):
    """One thing that an answer must say, must not say, or must not contradict. Exactly one kind of thing.

    `not_contradicted` may go unsaid. It is for what can be said wrong: a number, a date, an identifier, a conclusion.
    """

    id: Name
    must: Literal["present", "absent", "not_contradicted"] = "present"
    turn: int | None = Field(default=None, ge=1)  #: of the answer, counted from 1; none: the last
    rests_on: tuple[Citation, ...] = Field(min_length=1)
    number: float | None = None
    tolerance: float = Field(default=0.0, ge=0)  #: in the number's unit
    unit: Pattern | None = None  #: what must follow the number, as in `days?`
    near: Pattern | None = None  #: only numbers, dates and identifiers in a clause with this count
    date: str | None = Field(default=None, pattern=r"^\d{4}-\d{2}-\d{2}$")
    identifier: str | None = None
    concludes: Name | None = None  #: one of the suite's conclusions
    holds: bool | None = None  #: the conclusion drawn; none, with `absent`: neither may be drawn
    asks_for: tuple[Pattern, ...] | None = None  #: the answer asks the user for something that one of these names
    unavailable: Literal[True] | None = None  #: the answer says that the data cannot be had
    executed: Pattern | None = None  #: what the answer claims to have done or set in motion, as in `refund|return`
    function: Name | None = None  #: of the suite's `answer_functions`

    @property
    def kind(self) -> FactKind:
        """The kind of thing that is looked for."""
        return next(kind for kind in FACT_KINDS if getattr(self, kind) is not None)

    @model_validator(mode="after")
    def _reads(self) -> Self:
        given = [kind for kind in FACT_KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(FACT_KINDS)}")
        kind = given[0]
        if self.must == "not_contradicted" and kind not in ("number", "date", "identifier", "concludes"):
            raise ValueError(f"{kind} is said or not said: write must: present or must: absent")
        if kind == "concludes" and (self.holds is None) != (self.must == "absent"):
            raise ValueError("holds goes with present and not_contradicted; absent forbids both conclusions")
        if kind != "concludes" and self.holds is not None:
            raise ValueError("holds goes with concludes")
        if kind != "number" and (self.unit is not None or self.tolerance):
            raise ValueError("unit and tolerance go with number")
        if self.asks_for == ():
            raise ValueError("asks_for needs at least one pattern")
        return self


class Judgement(Contract):
    """A meaning that a right answer may have, by its name in the suite's `judgements`."""

    meaning: str
    resolves: bool = True  #: false: the answer is handled well, and what was asked stays open


class Reference(Contract):
    """What a defensible answer to a case means, and the fields that it rests on. Never shown to a model or a judge."""

    judgement: Name  #: one of the suite's `judgements`
    because: str  #: for people: why, in a sentence
    rests_on: tuple[Citation, ...] = Field(min_length=1)
    disputed: bool = False  #: reviewers disagree: the answer is INCONCLUSIVE, and no target for calibration


class Criterion(Contract):
    """One thing that a judge decides about an answer, by itself."""

    id: Name
    text: str = Field(min_length=1)


class Rubric(Contract):
    """What a judge is asked, where rules cannot reach. Another wording is another version."""

    id: Name
    version: str
    text: str = ""  #: what a judge must know for all criteria
    criteria: tuple[Criterion, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_differ(self) -> Self:
        ids = [criterion.id for criterion in self.criteria]
        if repeated := next((one for at, one in enumerate(ids) if one in ids[:at]), None):
            raise ValueError(f"two criteria are called '{repeated}'")
        return self


Value = Literal["PASS", "FAIL", "INCONCLUSIVE"]
VALUES: tuple[Value, ...] = ("PASS", "FAIL", "INCONCLUSIVE")
GRADERS: tuple[str, ...] = ("tool_route", "answer", "judge")
"""The graders that a verdict table speaks of, in the order in which labels are listed."""


class VerdictRow(Contract):
    """One row of a verdict table: labels, and what a trial with these is. A grader left out may say anything."""

    tool_route: Value | None = None
    answer: Value | None = None
    judge: Value | None = None
    verdict: Literal["passed", "failed", "inconclusive"]

    def covers(self, values: dict[str, Value]) -> bool:
        """Whether the row speaks of these labels. A grader that was not asked stands in no row's way by PASS."""
        asked = {grader: wanted for grader in GRADERS if (wanted := getattr(self, grader)) is not None}
        return all(values.get(grader, "PASS") == wanted for grader, wanted in asked.items())


VerdictTable = tuple[VerdictRow, ...]

BOTH_MUST_PASS: VerdictTable = (
    VerdictRow(tool_route="FAIL", verdict="failed"),
    VerdictRow(answer="FAIL", verdict="failed"),
    VerdictRow(judge="FAIL", verdict="failed"),
    VerdictRow(tool_route="INCONCLUSIVE", verdict="inconclusive"),
    VerdictRow(answer="INCONCLUSIVE", verdict="inconclusive"),
    VerdictRow(judge="INCONCLUSIVE", verdict="inconclusive"),
    VerdictRow(verdict="passed"),
)
"""A FAIL decides, then an INCONCLUSIVE; what is left passed. The first row that covers a trial's labels decides."""


def combinations() -> tuple[dict[str, Value], ...]:
    """Every way in which three graders can label a trial."""
    return tuple(dict(zip(GRADERS, values, strict=True)) for values in itertools.product(VALUES, repeat=len(GRADERS)))


def _has_no_hole(table: Any) -> Any:
    for values in combinations():
        if not any(row.covers(values) for row in table):
            told = ", ".join(f"{grader}: {value}" for grader, value in values.items())
            raise ValueError(f"the verdict table has a hole: no row covers {{{told}}}; add a row for it")
    for at, row in enumerate(table):
        if not any(row.covers(v) and not any(before.covers(v) for before in table[:at]) for v in combinations()):
            raise ValueError(f"row {at + 1} of the verdict table decides nothing: the rows before it cover all of it")
    return table


WholeVerdictTable = Annotated[VerdictTable, AfterValidator(_has_no_hole)]
