"""Labelled answers with the labels that count, alone and in pairs, and what a judge said of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalfarm.contracts.judging import Adjudication, Exhibit, LabelledAnswer, Opinion, subject_of
from evalfarm.contracts.verdict import LabelValue


@dataclass(frozen=True, slots=True)
class Target:
    """A labelled answer with the label that counts: the file's, or a later adjudication's."""

    answer: LabelledAnswer
    exhibit: Exhibit  #: what a judge is shown of it
    category: str
    reference: LabelValue
    adjudicated: bool

    @property
    def words(self) -> int:
        """The length of the answer."""
        return len(self.answer.answer.split())


@dataclass(frozen=True, slots=True)
class Judged:
    """A target with one judge's opinions on it, one for each time that it was asked."""

    target: Target
    opinions: tuple[Opinion, ...]

    @property
    def value(self) -> LabelValue:
        """What the judge said the first time."""
        return self.opinions[0].value

    @property
    def both_decided(self) -> bool:
        """Whether judge and person both passed or failed it."""
        return "INCONCLUSIVE" not in (self.value, self.target.reference)


def targets(
    answers: Iterable[tuple[LabelledAnswer, Exhibit]],
    categories: Mapping[str, str],
    decisions: Iterable[Adjudication],
) -> tuple[Target, ...]:
    """Labelled answers with the labels that count; `categories` are those of their cases, `decisions` oldest first."""
    decided = {decision.subject: decision.value for decision in decisions}
    found = []
    for answer, exhibit in answers:
        reference = decided.get(subject_of(answer.case, answer.answer), answer.label)
        found.append(Target(answer, exhibit, categories[answer.case], reference, adjudicated=reference != answer.label))
    return tuple(found)


def pairs_of(found: Sequence[Target], most: int) -> tuple[tuple[Target, Target], ...]:
    """Right and wrong answers to the same conversation over the same evidence, in pairs, the right one first.

    The k-th right answer of a case stands with its k-th wrong one. At most `most` pairs, round by round over the cases.
    """
    by_question: dict[tuple[object, ...], tuple[list[Target], list[Target]]] = {}
    for target in found:
        answer = target.answer
        right, wrong = by_question.setdefault((answer.case, answer.earlier, answer.evidence), ([], []))
        if target.reference != "INCONCLUSIVE":
            (right if target.reference == "PASS" else wrong).append(target)
    rounds = [(k, pair) for sides in by_question.values() for k, pair in enumerate(zip(*sides, strict=False))]
    return tuple(pair for _, pair in sorted(rounds, key=lambda one: one[0]))[:most]
