"""A judge with known error rates, held against labels: the figures find the rates, and the findings name the fault."""

import itertools
import random
from collections.abc import Callable, Sequence

import pytest

from evalfarm.analysis.judgement.calibration import About, between_judges, calibrate, pair_figures
from evalfarm.analysis.judgement.judge_faults import demand_calibrated, name_faults
from evalfarm.analysis.judgement.targets import Judged, Target, pairs_of, targets
from evalfarm.contracts.calibration import Calibration, Uses
from evalfarm.contracts.judging import (
    Adjudication,
    CriterionLabel,
    Exhibit,
    JudgeIdentity,
    LabelledAnswer,
    Opinion,
    PairOpinion,
    Preference,
)
from evalfarm.contracts.run import Turn
from evalfarm.contracts.verdict import LabelValue
from evalfarm.errors import UsageError

JUDGE = JudgeIdentity(model="j", prompt_version="1", prompt="sha256:p", rubrics={"desk": "sha256:r"})
DIGESTS = {"judge/j": JUDGE.model_copy(update={"rubrics": {}}).digest, "rubric/desk": "sha256:r", "plan": "sha256:x"}
ONCE = Uses(times=1, judges=1, versions=1)


def target(at: int, label: LabelValue, words: int = 10) -> Target:
    answer = LabelledAnswer(
        id=f"a{at}",
        case=f"case-{at % 7}",
        purpose="held-out",
        kind="long" if words > 40 else "short",
        answer=" ".join([f"w{at}"] * words),
        label=label,
        fails=("right",) if label == "FAIL" else (),
        cites="request",
        because="So.",
    )
    return Target(answer, Exhibit(turns=(Turn(query="Q?", answer=answer.answer),)), f"kind-{at % 2}", label, False)


def opinion(value: LabelValue) -> Opinion:
    return Opinion(judge="j", labels=(CriterionLabel(criterion="right", value=value, quote="w"),), cost_usd=0.0)


FAILED = Opinion(judge="j", failure="HTTP 503", outage=True)


def judged(told: Callable[[Target], Sequence[Opinion]], passes: int = 200, fails: int = 200) -> list[Judged]:
    """Answers of every length under both labels, as a judge tells them."""
    labels: list[LabelValue] = ["PASS"] * passes + ["FAIL"] * fails
    found = [target(at, label, words=5 + at * 7 % 60) for at, label in enumerate(labels)]
    return [Judged(one, tuple(told(one))) for one in found]


def calibration(
    found: Sequence[Judged], pairs: Sequence[PairOpinion] = (), uses: Uses = ONCE, judge: JudgeIdentity = JUDGE
) -> Calibration:
    about = About(
        id="c",
        at=0.0,
        judge=judge,
        simulated=True,
        suite="s",
        suite_version="1",
        labels="sha256:l",
        purpose="held-out",
        uses=uses,
    )
    return name_faults(calibrate(about, found, pairs, [0.0], 1))


def sound(one: Target) -> list[Opinion]:
    return [opinion(one.reference)] * 2


def pair(first: str, second: str) -> PairOpinion:
    chosen = [Preference.model_validate({"chosen": None if one == "neither" else one}) for one in (first, second)]
    return PairOpinion(in_order=chosen[0], swapped=chosen[1])


def test_a_sound_judge_has_no_fault_and_the_figures_say_how_much_is_known() -> None:
    found = calibration(judged(sound), [pair("first", "second")] * 20)
    assert found.findings == ()
    assert (found.overall.false_accept.hits, found.overall.false_accept.of) == (0, 200)
    assert found.false_accept_at_most == pytest.approx(1 - 0.05 ** (1 / 200))
    assert (found.raw_agreement, found.kappa.value, found.human_pass_share) == (1.0, 1.0, 0.5)
    assert (found.self_disagreement.value, found.pairs.right.value, found.pairs.p) == (0.0, 1.0, None)
    assert found.length.p is None


@pytest.mark.parametrize("seed", range(5))
def test_known_error_rates_are_found_within_their_intervals_and_named(seed: int) -> None:
    draw = random.Random(seed)

    def told(one: Target) -> list[Opinion]:
        flips = draw.random() < (0.3 if one.reference == "FAIL" else 0.2)
        return [opinion({"PASS": "FAIL", "FAIL": "PASS"}[one.reference] if flips else one.reference)]

    found = calibration(judged(told))
    accept, reject = found.overall.false_accept, found.overall.false_reject
    # 99.9 % of draws: this is a check of the arithmetic, and not one of luck.
    assert abs((accept.value or 0) - 0.3) < 3.3 * (0.3 * 0.7 / 200) ** 0.5
    assert abs((reject.value or 0) - 0.2) < 3.3 * (0.2 * 0.8 / 200) ** 0.5
    assert [finding.partition(":")[0] for finding in found.findings] == ["LENIENT", "HARSH"]


def test_a_judge_that_favours_length_is_named_for_that_and_the_thirds_show_it() -> None:
    found = calibration(judged(lambda one: [opinion("PASS" if one.words >= 45 else one.reference)]))
    assert any(finding.startswith("FAVOURS LENGTH") for finding in found.findings)
    short, middle, long = found.by_length
    assert (short.false_accept.hits, middle.false_accept.hits) == (0, 0)
    assert long.false_accept.hits == found.overall.false_accept.hits > 0
    assert [one.answers for one in found.by_length] != [0, 0, 0]


def test_a_lenient_judge_is_not_said_to_favour_length() -> None:
    draw = random.Random(1)
    found = calibration(judged(lambda one: [opinion("PASS" if draw.random() < 0.4 else one.reference)]))
    assert [finding.partition(":")[0] for finding in found.findings] == ["LENIENT"]


def test_long_answers_that_are_right_more_often_are_no_bias_of_the_judge() -> None:
    found = [target(at, "PASS" if at % 60 > 30 else "FAIL", words=5 + at % 60) for at in range(240)]
    assert calibration([Judged(one, tuple(sound(one))) for one in found]).findings == ()


def test_a_judge_that_favours_a_position_is_named_with_the_position() -> None:
    first = calibration(judged(sound), [pair("first", "first")] * 20)
    second = calibration(judged(sound), [pair("second", "second")] * 20)
    assert [one.findings[0].partition(":")[0] for one in (first, second)] == [
        "FAVOURS THE FIRST POSITION",
        "FAVOURS THE SECOND POSITION",
    ]


def test_an_order_that_decides_now_this_way_and_now_that_favours_none() -> None:
    assert calibration(judged(sound), [pair("first", "first"), pair("second", "second")] * 10).findings == ()


def test_pairs_are_counted_apart_where_the_judge_failed_or_saw_no_difference() -> None:
    failed = PairOpinion(in_order=Preference(chosen="first"), swapped=Preference(failure="HTTP 503"))
    found = pair_figures([failed, pair("first", "second"), pair("second", "first"), pair("neither", "neither")])
    assert (found.pairs, found.failed, found.order_decided.hits, found.p) == (3, 1, 0, None)
    assert (found.right.hits, found.right.of) == (1, 3)


def test_a_judge_that_is_down_is_named_for_that_and_its_silence_is_no_error() -> None:
    found = calibration(judged(lambda one: [FAILED if one.words % 3 == 0 else opinion(one.reference)]))
    assert [finding.partition(":")[0] for finding in found.findings] == ["UNRELIABLE"]
    assert found.overall.false_accept.hits == found.overall.false_reject.hits == 0
    assert found.decided + found.failed.hits == 400


def test_a_judge_that_changes_its_mind_is_unsteady() -> None:
    flips = itertools.cycle([("PASS", "PASS"), ("PASS", "FAIL")])
    values: dict[LabelValue, LabelValue] = {"PASS": "FAIL", "FAIL": "PASS"}

    def told(one: Target) -> list[Opinion]:
        same = next(flips)[1] == "PASS"
        return [opinion(one.reference), opinion(one.reference if same else values[one.reference])]

    found = calibration(judged(told))
    assert [finding.partition(":")[0] for finding in found.findings] == ["UNSTEADY"]
    assert found.self_disagreement.value == pytest.approx(0.5)


def test_abstentions_are_counted_and_are_no_errors() -> None:
    found = calibration(judged(lambda _: [opinion("INCONCLUSIVE")]))
    assert (found.abstained.hits, found.failed.hits, found.decided) == (400, 0, 0)
    assert [finding.partition(":")[0] for finding in found.findings] == ["UNDECIDED"]
    assert (found.false_accept_at_most, found.raw_agreement, found.kappa.value) == (None, None, None)


def test_a_disputed_reference_takes_no_part() -> None:
    rows = [*judged(sound, 3, 3), Judged(target(99, "INCONCLUSIVE"), (opinion("PASS"),))]
    found = calibration(rows)
    assert (found.answers, found.disputed, found.decided) == (7, 1, 6)


def test_each_disagreement_is_listed_with_both_labels_and_what_the_reference_cites() -> None:
    rows = [Judged(target(1, "FAIL"), (opinion("PASS"),)), Judged(target(2, "PASS"), (opinion("PASS"),))]
    (one,) = calibration(rows).disagreements
    assert (one.place, one.case, one.labels, one.cites) == (
        "a1",
        "case-1",
        {"judge": "PASS", "people": "FAIL"},
        "request",
    )


def test_single_criteria_are_held_against_what_each_answer_fails() -> None:
    (rates,) = calibration(judged(sound, 3, 4)).by_criterion
    assert (rates.name, rates.answers, rates.false_accept.of, rates.false_reject.of) == ("right", 7, 4, 3)


def test_two_judges_agree_by_kappa_with_prevalence() -> None:
    one = judged(sound)
    other = [Judged(row.target, (opinion("PASS"),)) for row in one]
    found = between_judges(one, other, "k")
    assert (found.other, found.answers, found.raw, found.kappa.value, found.pass_share) == ("k", 400, 0.5, 0.0, 0.5)


def test_a_later_decision_changes_the_label_that_counts_and_says_so() -> None:
    found = [target(at, "FAIL") for at in range(3)]
    decisions = [
        Adjudication(
            suite="s",
            suite_version="1",
            case=found[at].answer.case,
            answer=f"  {found[at].answer.answer}\n",
            labels={},
            value=value,
            why="So.",
            by="me",
            at=float(at),
        )
        for at, value in ((0, "FAIL"), (1, "PASS"), (1, "INCONCLUSIVE"))
    ]
    categories = {one.answer.case: "kind" for one in found}
    again = targets([(one.answer, one.exhibit) for one in found], categories, decisions)
    assert [(one.reference, one.adjudicated) for one in again] == [
        ("FAIL", False),
        ("INCONCLUSIVE", True),
        ("FAIL", False),
    ]


def test_pairs_hold_a_right_and_a_wrong_answer_to_one_question_in_turns_over_the_cases() -> None:
    found = [target(at, "PASS" if at < 14 else "FAIL") for at in range(28)] + [target(35, "INCONCLUSIVE")]
    pairs = pairs_of(found, 9)
    assert all((a.reference, b.reference) == ("PASS", "FAIL") and a.answer.case == b.answer.case for a, b in pairs)
    assert [a.answer.case for a, _ in pairs] == [f"case-{at % 7}" for at in range(9)]
    assert len(pairs_of(found, 99)) == 14


def test_a_gate_takes_a_judge_that_is_shown_to_be_good_enough() -> None:
    found = calibration(judged(sound, 30, 59))
    assert demand_calibrated("r", DIGESTS, [found], 0.05) == (found,)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "the judge j of run 'r' is not calibrated on held-out labels"),
        ([calibration(judged(sound, 30, 58))], "may pass more wrong answers than 5.0%: 0 of 58 wrong answers passed"),
        (
            [calibration(judged(sound), judge=JUDGE.model_copy(update={"prompt": "sha256:q"}))],
            r"is not calibrated on held-out labels \(it was calibrated with another prompt or rubric\)",
        ),
        (
            [calibration(judged(sound), judge=JUDGE.model_copy(update={"rubrics": {"desk": "sha256:other"}}))],
            "is not calibrated on held-out labels",
        ),
        (
            [calibration(judged(sound)).model_copy(update={"purpose": "calibration"})],
            "is not calibrated on held-out labels",
        ),
        (
            [calibration(judged(lambda one: [opinion("INCONCLUSIVE" if one.words % 3 == 0 else one.reference)]))],
            "left 13. of 400 answers open",
        ),
        (
            [calibration(judged(sound), uses=Uses(times=2, judges=1, versions=2))],
            "2 versions of the judge j were held against the same held-out labels",
        ),
    ],
)
def test_a_gate_refuses_a_judge_that_is_not(found: list[Calibration], why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        demand_calibrated("r", DIGESTS, found, 0.05)
    assert caught.value.hint


def test_the_newest_calibration_counts() -> None:
    bad = calibration(judged(lambda _: [opinion("PASS")]))
    with pytest.raises(UsageError, match="may pass more wrong answers"):
        demand_calibrated("r", DIGESTS, [bad, calibration(judged(sound))], 0.05)


def test_a_run_without_a_judge_has_none_to_be_calibrated() -> None:
    with pytest.raises(UsageError, match="run 'r' had no judge"):
        demand_calibrated("r", {"plan": "sha256:x"}, [], 0.05)


def test_a_second_version_held_against_held_out_labels_is_said_to_be_perhaps_tuned_on_them() -> None:
    found = calibration(judged(sound), uses=Uses(times=4, judges=2, versions=2))
    assert [finding.partition("?")[0] for finding in found.findings] == ["TUNED ON HELD-OUT LABELS"]
