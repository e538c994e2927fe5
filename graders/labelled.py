"""A labelled answer before the graders that judge by rules, as if it had been given in a run. Pure."""

from collections.abc import Mapping

from evalfarm.contracts.base import digest
from evalfarm.contracts.judging import CriterionLabel, Exhibit, JudgeIdentity, LabelledAnswer, Opinion
from evalfarm.contracts.run import Arm, Telemetry, Trace, Trial
from evalfarm.contracts.suite import Suite
from graders import answer
from graders.reading.facts import AnswerFunction

RULES = "rules"
"""What goes by the name of a judge where the rules are held against people's labels."""


def opinion_of_rules(
    suite: Suite, labelled: LabelledAnswer, exhibit: Exhibit, functions: Mapping[str, AnswerFunction]
) -> Opinion:
    """What the rules say of a labelled answer, in the form in which judges speak; it costs nothing."""
    case = suite.case(labelled.case)
    label = answer.judge_answer(suite, case, _trace(labelled, exhibit), functions)
    if label is None:
        return Opinion(judge=RULES, failure=f"case {case.id} has no facts to judge by", replies=0, cost_usd=0.0)
    told = CriterionLabel(criterion=answer.GRADER, value=label.value, reason="; ".join(label.reasons))
    return Opinion(judge=RULES, labels=(told,), cost_usd=0.0)


def rules_identity(suite: Suite, functions: str) -> JudgeIdentity:
    """Everything that can move what the rules say: their version, the suite's words and facts, its own functions.

    `functions` is the digest of the suite's file of functions, or empty.
    """
    facts = {case.id: [fact.model_dump(mode="json") for fact in case.facts] for case in suite.cases}
    words = {name: one.model_dump(mode="json") for name, one in suite.conclusions.items()}
    return JudgeIdentity(
        model=RULES,
        prompt_version=answer.VERSION,
        prompt=digest([answer.VERSION, facts, words, functions]),
        rubrics={},
    )


def _trace(labelled: LabelledAnswer, exhibit: Exhibit) -> Trace:
    arm = Arm(model="labels", harness="loop", variant="plain")
    return Trace(
        run="labels",
        trial=Trial(index=0, case=labelled.case, repeat=0, arm=arm, seed=0),
        attempt=1,
        outcome="finished",
        turns=exhibit.turns,
        tool_calls=exhibit.evidence,
        served_calls=exhibit.evidence,
        telemetry=Telemetry(complete=True),
        started_at=0.0,
        duration_s=0.0,
    )
