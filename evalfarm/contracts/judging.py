"""What a model judge is shown and says, what people say of the same answers, and how far the two agree.

A judge is a model with a prompt and a rubric. It is shown an exhibit and gives an opinion: one label per criterion. It
is never shown what is expected. A labelled answer is an exhibit with a person's label; a calibration holds a judge
against many of them; an adjudication is a person's decision where two labels disagree.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from evalfarm.contracts.answer import Citation, FixtureName
from evalfarm.contracts.base import Contract, Name, digest
from evalfarm.contracts.run import ModelRequest, ToolCall, Turn
from evalfarm.contracts.verdict import LabelValue

PEOPLE = "people"
"""Whose label a reference is, where labels are told by who gave them."""

JUDGE = "judge"
"""The name of the grader that a judge is."""

Purpose = Literal["calibration", "held-out"]
"""`calibration`: answers that a judge's prompt and rubric may be tuned on; `held-out`: answers that they may not."""

Place = Literal["first", "second"]


class Exhibit(Contract):
    """What a judge is shown of one answer: the conversation up to it, and what the tools returned."""

    turns: tuple[Turn, ...] = Field(min_length=1)  #: the answer to be judged is the last one's
    evidence: tuple[ToolCall, ...] = ()

    @property
    def answer(self) -> str:
        """The answer to be judged."""
        return self.turns[-1].answer


class JudgeIdentity(Contract):
    """Everything about a judge that can move its labels. Equal digests: labels mean the same."""

    model: str
    prompt_version: str
    prompt: str  #: digest of the instructions and of the form of the reply
    rubrics: dict[Name, str]  #: rubric -> digest of its version, text and criteria

    @property
    def digest(self) -> str:
        """`sha256:…` over all of it."""
        return digest(self)


class CriterionLabel(Contract):
    """A judge's label for one criterion, with the words that it rests on."""

    criterion: Name
    value: LabelValue  #: INCONCLUSIVE: the judge abstained
    quote: str = ""  #: copied from what it was shown; empty only where it abstained
    reason: str = ""


class Opinion(Contract):
    """What one judge said of one exhibit, and what that took. A failure of the judge says nothing of the answer."""

    judge: str  #: the model
    labels: tuple[CriterionLabel, ...] = ()
    failure: str | None = None  #: why there are no labels: an outage, a refusal, replies that could not be used
    outage: bool = False  #: the failure is one of reaching the judge, so that asking later may help
    replies: int = 1  #: asked for, the unusable ones included
    requests: tuple[ModelRequest, ...] = ()
    cost_usd: float | None = None  #: None: unknown

    @model_validator(mode="after")
    def _labels_or_failure(self) -> Self:
        if bool(self.labels) == (self.failure is not None):
            raise ValueError("an opinion has labels, or says why it has none")
        return self

    @property
    def value(self) -> LabelValue:
        """One FAIL fails the answer, then one abstention leaves it open; a judge that failed leaves it open."""
        values = {label.value for label in self.labels}
        if "FAIL" in values:
            return "FAIL"
        return "PASS" if values == {"PASS"} else "INCONCLUSIVE"


class TrialOpinions(Contract):
    """What one attempt at judging a trial brought: the opinion of every judge. Every attempt is kept, create-only."""

    run: Name
    index: int  #: of the trial
    judged: int  #: the attempt of the trial whose trace was judged
    attempt: int  #: at judging it
    opinions: tuple[Opinion, ...] = Field(min_length=1)

    @property
    def outage(self) -> bool:
        """Whether a judge could not be reached, so that another attempt is worth it."""
        return any(opinion.outage for opinion in self.opinions)

    @property
    def cost_usd(self) -> float | None:
        """US dollars of all of them; None as soon as one is unknown."""
        costs = [opinion.cost_usd for opinion in self.opinions]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


class JudgingItem(Contract):
    """One trial that waits for the judges."""

    index: int
    attempt: int  #: that counted


class JudgingPlan(Contract):
    """Which of a run's trials the judges look at, fixed when the last trial has closed. An item is a place in it."""

    run: Name
    items: tuple[JudgingItem, ...]


class JudgingTally(Contract):
    """What came of a run's judging; written once, with the results that it led to."""

    run: Name
    labels: dict[LabelValue, int]  #: of all answers that were to be judged
    attempts: int  #: at judging, all of them
    cost_usd: float | None  #: of all of them; None as soon as one is unknown
    disagreements: int  #: answers that the rules pass and the judges fail, or the other way round
    not_asked: int = 0  #: answers that no judge looked at: the money was spent, or each attempt was lost


class Preference(Contract):
    """A judge's choice between two answers, shown in one order."""

    chosen: Place | None = None  #: None: neither is better, or the judge failed
    failure: str | None = None


class PairOpinion(Contract):
    """A judge's choice between two answers, asked in both orders: one is better only where both orders say so."""

    in_order: Preference
    swapped: Preference  #: what was shown first is shown second

    @property
    def failed(self) -> bool:
        """Whether an order has no choice because the judge failed."""
        return self.in_order.failure is not None or self.swapped.failure is not None

    @property
    def better(self) -> Place | None:
        """The answer that is better in both orders, by its place in order."""
        agreed = self.in_order.chosen is not None and self.in_order.chosen == _OTHER.get(self.swapped.chosen or "")
        return self.in_order.chosen if agreed else None

    @property
    def place(self) -> Place | None:
        """The place that won in both orders, whichever answer stood there: the order decided, not the answers."""
        return self.in_order.chosen if self.in_order.chosen == self.swapped.chosen else None


_OTHER: dict[str, Place] = {"first": "second", "second": "first"}


class LabelledAnswer(Contract):
    """A candidate answer with a person's label: a line of a file of labels. Request and evidence are the suite's."""

    id: Name
    case: Name
    purpose: Purpose
    kind: Name  #: what sort of answer it is, as `ignores-exclusion`
    earlier: tuple[str, ...] = ()  #: the answers to the case's earlier turns
    answer: str = Field(min_length=1)
    evidence: tuple[FixtureName, ...] = ()  #: the fixtures that had come back, in this order
    label: LabelValue  #: INCONCLUSIVE: disputed, and no target for calibration
    fails: tuple[Name, ...] = ()  #: the criteria that a FAIL fails
    cites: Citation  #: the fixture's field, or the request, that the label rests on
    because: str = Field(min_length=1)  #: for people

    @model_validator(mode="after")
    def _fails_what(self) -> Self:
        if (self.label == "FAIL") != bool(self.fails):
            raise ValueError("a FAIL names the criteria that it fails in `fails`, and nothing else does")
        return self


class Disagreement(Contract):
    """One answer on which labels disagree, with everything that a reviewer needs to settle it."""

    place: str  #: where the answer is: RUN/TRIAL, or the id of a labelled answer
    case: Name
    request: str
    evidence: tuple[ToolCall, ...] = ()
    answer: str
    labels: dict[str, LabelValue]  #: who says what: `answer` (rules), `judge`, `people`; empty: drawn at random
    reasons: tuple[str, ...] = ()
    cites: str = ""  #: the fixtures' fields that the reference rests on

    @property
    def subject(self) -> str:
        """What is to be decided on."""
        return subject_of(self.case, self.answer)


class Adjudication(Contract):
    """A person's decision on one answer's label. Kept for ever; a later one on the same answer outweighs it."""

    suite: Name
    suite_version: str
    case: Name
    answer: str
    labels: dict[str, LabelValue]  #: that disagreed; empty: drawn at random, and decided on without them
    cites: str = ""
    value: LabelValue  #: the label from now on; INCONCLUSIVE: disputed, and no target for calibration
    why: str = Field(min_length=1)
    by: str = Field(min_length=1)
    at: float  #: seconds since the epoch

    @property
    def subject(self) -> str:
        """What was decided on: the case and the answer's words, wherever they come up again."""
        return subject_of(self.case, self.answer)


def subject_of(case: str, answer: str) -> str:
    """A digest of a case and an answer's words, white space apart: what an adjudication is about."""
    return digest([case, " ".join(answer.split())])
