from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.comparability import Mismatch
from evalfarm.analysis.judgement.gate import Gate, GatedArm, GateQuestion, judge_run, worst_of
from evalfarm.analysis.judgement.nights import DROPS, rule_odds
from evalfarm.analysis.judgement.notes import ArmNote, CaseChange, CaseSets, Source, run_note
from evalfarm.analysis.statistics.drift import BarCheck, against_bar
from evalfarm.analysis.statistics.paired import case_counts
from evalfarm.analysis.statistics.regression import NIGHTLY, judge_night
from evalfarm.analysis.statistics.rule_check import nightly_odds
from evalfarm.errors import UsageError
from tests.made_runs import CODEX, DIGESTS, GUIDED, LOOP, OTHER, made_case, made_run, made_source

STEADY = [3] * 16 + [2] * 3 + [1]
BROKEN = [0] * 8 + STEADY[8:]
BETTER = [3] * 20
ELSE = "sha256:" + "e" * 64
RULE = replace(NIGHTLY, least_nights=3)


def nights(count: int, passes: list[int] = STEADY, arm: ArmName = LOOP) -> list[Source]:
    return [made_source(f"night-{n}", {arm: passes}, tags=True) for n in range(1, count + 1)]


def tonight(passes: list[int], arm: ArmName = LOOP, **changes: object) -> Source:
    return made_source("tonight", {arm: passes}, tags=True, **changes)


def fresh(passes: list[int], arm: ArmName = LOOP) -> Source:
    return made_source("again", {arm: passes}, 6, tags=True, label="confirm/tonight")


def test_a_night_like_the_others_held() -> None:
    found = judge_run(tonight(STEADY), nights(5), None, GateQuestion())
    assert (found.verdict, found.to_confirm, found.baselines) == ("held", (), tuple(f"night-{n}" for n in range(1, 6)))
    (arm,) = found.arms
    counts = case_counts(STEADY, [3] * 20)
    expected = judge_night([counts] * 5, counts)
    assert arm.night is not None
    assert arm.reasons == (expected.reason,)
    assert (arm.night.change, arm.night.p_screen) == (expected.change, expected.p_screen)
    assert (arm.night.cases, arm.night.changes) == (CaseSets(20, (), ()), ())


def test_a_night_whose_screen_fires_is_inconclusive_until_it_is_confirmed() -> None:
    found = judge_run(tonight(BROKEN), nights(5), None, GateQuestion())
    assert (found.verdict, found.to_confirm) == ("inconclusive", (ArmNote("tonight", *LOOP, name=str(LOOP)),))
    assert found.arms[0].reasons[0].endswith("6 fresh repeats of every case decide")


def test_a_confirmed_drop_regressed_with_the_slices_and_cases_behind_it() -> None:
    again = fresh([0] * 8 + [2 * passed for passed in STEADY[8:]])
    found = judge_run(tonight(BROKEN), nights(5), again, GateQuestion())
    night = found.arms[0].night
    assert night is not None
    assert (found.verdict, found.confirm, found.to_confirm) == ("regressed", "again", ())
    assert [suspect.name for suspect in night.slices if suspect.named] == ["half=even", "half=odd"]
    assert {suspect.name for suspect in night.suspects if suspect.named} == {f"case-{n}" for n in range(1, 9)}
    assert night.changes[0] == CaseChange("case-1", "15/15", "0/9", -1.0)


def test_a_drop_that_fresh_repeats_do_not_show_held() -> None:
    found = judge_run(
        tonight([0] * 2 + STEADY[2:]), nights(5), fresh([2 * passed for passed in STEADY]), GateQuestion()
    )
    night = found.arms[0].night
    assert night is not None
    assert (found.verdict, night.to_confirm, night.slices, night.suspects) == ("held", False, (), ())


def test_a_better_night_improved() -> None:
    bad = [1] * 20
    assert judge_run(tonight(BETTER), nights(5, bad), None, GateQuestion()).verdict == "improved"


def test_too_few_nights_are_inconclusive_until_the_rule_asks_for_fewer() -> None:
    few = judge_run(tonight(STEADY), nights(3), None, GateQuestion())
    assert (few.verdict, few.arms[0].reasons) == (
        "inconclusive",
        ("the baseline has 3 accepted nights; 5 are needed",),
    )
    assert judge_run(tonight(STEADY), nights(3), None, GateQuestion(RULE)).verdict == "held"


def test_a_fall_too_slow_for_the_screen_regressed_by_the_slow_drift_detector() -> None:
    falling = [[3] * (20 - n) + [2] * n for n in range(0, 20, 2)]
    before = [made_source(f"night-{n}", {LOOP: passes}) for n, passes in enumerate(falling[:-1])]
    question = GateQuestion(replace(NIGHTLY, screen=1e-9))
    found = judge_run(tonight(falling[-1]), before, None, question).arms[0]
    assert found.night is not None
    assert (found.verdict, found.night.drifted) == ("regressed", True)
    assert found.reasons[1].startswith("the slow-drift detector alarms (level ")


def test_the_rule_s_odds_are_for_this_arm_s_cases_steadiness_and_nights() -> None:
    night = judge_night([case_counts(STEADY, [3] * 20)] * 6, case_counts(STEADY, [3] * 20))
    odds = rule_odds(night, NIGHTLY)
    assert odds is not None
    d = (sum(2 * 6 * p * (18 - 6 * p) / (18 * 17) for p in STEADY) + 0.5) / 21
    rate = (sum(STEADY) / 3 + 0.5) / 21
    rule = replace(NIGHTLY, most_nights=6)
    expected = [nightly_odds(20, 3, drop, disagreement=d, rate=rate, rule=rule) for drop in DROPS]
    assert odds.nights == 6
    assert odds.false_alarm == pytest.approx(expected[0].false_alarm)
    assert [power.power for power in odds.power] == pytest.approx([one.power for one in expected])


def test_a_perfect_baseline_does_not_make_the_rule_look_perfect() -> None:
    night = judge_night([case_counts([3] * 5, [3] * 5)] * 5, case_counts([3] * 5, [3] * 5))
    odds = rule_odds(night, NIGHTLY)
    assert odds is not None
    assert (0.001 < odds.false_alarm < 0.01, odds.power[0].power < 0.1) == (True, True)


def test_one_night_says_nothing_of_how_nights_spread_so_the_odds_are_not_told() -> None:
    counts = case_counts(STEADY, [3] * 20)
    assert rule_odds(judge_night([counts], counts), replace(NIGHTLY, least_nights=1)) is None


@pytest.mark.parametrize(
    ("passes", "verdict", "words"),
    [
        ([3] * 60, "held", "with 95 % confidence the pass rate reaches the bar of 90.0%"),
        ([0] * 60, "regressed", "with 95 % confidence the pass rate stays below the bar of 90.0%"),
        (
            [3] * 5,
            "inconclusive",
            "too little evidence whether the pass rate reaches the bar of 90.0% (about 29 cases like these would tell)",
        ),
    ],
)
def test_a_fixed_bar_needs_no_baseline(passes: list[int], verdict: str, words: str) -> None:
    note = run_note(tonight(passes).summary)
    bar = against_bar(passes, [3] * len(passes), 0.9)
    assert judge_run(tonight(passes), [], None, GateQuestion(at_least=0.9)) == Gate(
        run=note,
        baselines=(),
        confirm=None,
        rule=NIGHTLY,
        at_least=0.9,
        verdict=verdict,  # type: ignore[arg-type]
        arms=(GatedArm(ArmNote("tonight", *LOOP, name=str(LOOP)), verdict, (words,), None, bar),),  # type: ignore[arg-type]
        without_baseline=(),
    )


def test_a_run_that_held_against_its_nights_can_still_miss_its_bar() -> None:
    low = [1] * 20
    found = judge_run(tonight(low), nights(5, low), None, GateQuestion(at_least=0.9))
    assert (found.verdict, len(found.arms[0].reasons)) == ("regressed", 2)
    assert isinstance(found.arms[0].bar, BarCheck)


def test_what_is_under_test_may_differ_from_night_to_night_and_is_listed() -> None:
    changed = tonight(STEADY, digests=DIGESTS | {"files": ELSE, "tools/plain": ELSE})
    night = judge_run(changed, nights(5), None, GateQuestion()).arms[0].night
    assert night is not None
    assert night.differing == (
        Mismatch("files", "sha256:333333333333", "sha256:eeeeeeeeeeee"),
        Mismatch("tools/plain", "sha256:777777777777", "sha256:eeeeeeeeeeee"),
    )


def test_another_grader_refuses_until_it_is_allowed() -> None:
    changed = tonight(STEADY, digests=DIGESTS | {"grader": ELSE})
    with pytest.raises(UsageError, match="grader: sha256:999999999999 against sha256:eeeeeeeeeeee"):
        judge_run(changed, nights(5), None, GateQuestion())
    assert judge_run(changed, nights(5), None, GateQuestion(allowed={"grader"})).verdict == "held"


def test_a_confirm_run_may_differ_in_nothing_from_the_run_it_confirms() -> None:
    other = made_source("again", {LOOP: STEADY}, 6, digests=DIGESTS | {"files": ELSE})
    with pytest.raises(UsageError, match="files"):
        judge_run(tonight(BROKEN), nights(5), other, GateQuestion())


def test_several_arms_are_one_family_and_the_worst_of_them_is_the_verdict() -> None:
    before = [made_source(f"night-{n}", {LOOP: STEADY, GUIDED: STEADY}) for n in range(5)]
    run = made_source("tonight", {LOOP: BROKEN, GUIDED: STEADY})
    again = made_source("again", {LOOP: [2 * passed for passed in BROKEN]}, 6)
    found = judge_run(run, before, again, GateQuestion())
    assert (found.verdict, [arm.verdict for arm in found.arms]) == ("regressed", ["regressed", "held"])
    assert found.arms[0].reasons[0].endswith("; an alert among all arms of tonight")
    assert worst_of(["held", "improved"]) == "improved"
    assert worst_of(["held", "inconclusive"]) == "inconclusive"


def test_an_arm_that_no_night_has_is_named_and_not_judged() -> None:
    run = made_source("tonight", {LOOP: STEADY, CODEX: STEADY}, tags=True)
    found = judge_run(run, nights(5), None, GateQuestion())
    assert [arm.arm.name for arm in found.arms] == ["m · loop · plain"]
    assert [arm.name for arm in found.without_baseline] == ["m · codex · plain"]


def test_new_cases_are_left_out_and_said_so() -> None:
    summary = tonight(STEADY).summary
    more = made_run("tonight", *summary.cases, made_case("new", LOOP, 0, 3))
    night = judge_run(Source(more, {}), nights(5), None, GateQuestion()).arms[0].night
    assert night is not None
    assert night.cases == CaseSets(20, (), ("new",))


def test_a_figure_that_rose_is_told_for_information() -> None:
    def run(name: str, seconds: float) -> Source:
        cases = [
            made_case(f"c{n}", LOOP, 3, 3, latency_s=seconds * (1 + n / 10), tool_calls=2.0 if n else None)
            for n in range(20)
        ]
        return Source(made_run(name, *cases), {})

    found = judge_run(run("tonight", 2.0), [run(f"n{at}", 1.0) for at in range(5)], None, GateQuestion())
    night = found.arms[0].night
    assert night is not None
    assert (found.verdict, night.risen) == ("held", ("latency_s",))
    assert (night.figures["latency_s"].factor.value, night.figures["tool_calls"].cases) == (pytest.approx(2.0), 19)


def test_the_document_is_json_and_reads_back() -> None:
    again = fresh([2 * passed for passed in BROKEN])
    found = judge_run(tonight(BROKEN), nights(5), again, GateQuestion(at_least=0.5))
    adapter = TypeAdapter(Gate)
    assert adapter.validate_json(adapter.dump_json(found)) == found


def test_without_baseline_and_bar_there_is_nothing_to_judge() -> None:
    with pytest.raises(UsageError) as caught:
        judge_run(tonight(STEADY), [], None, GateQuestion())
    assert str(caught.value) == (
        "there is nothing to hold run 'tonight' against\n\n"
        "hint: name one run or several with --baseline, or a fixed bar: --at-least 0.9"
    )


def test_a_run_is_not_its_own_baseline() -> None:
    with pytest.raises(UsageError) as caught:
        judge_run(tonight(STEADY), [*nights(4), tonight(STEADY)], None, GateQuestion())
    assert str(caught.value) == "run 'tonight' is its own baseline\n\nhint: name runs that went before it"


def test_a_baseline_of_other_arms_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        judge_run(tonight(STEADY), nights(5, arm=OTHER), None, GateQuestion())
    assert str(caught.value) == (
        "no arm of run 'tonight' is in its baseline: m · loop · plain\n\n"
        "hint: name baselines that ran the same models, harnesses and variants"
    )


def test_a_baseline_of_other_cases_is_refused() -> None:
    other = Source(made_run("night", made_case("new", LOOP, 3, 3)), {})
    with pytest.raises(UsageError, match="has no case in common with its baseline"):
        judge_run(tonight(STEADY), [other] * 5, None, GateQuestion())


@pytest.mark.parametrize("bar", [0.0, 1.1, 90.0])
def test_a_bar_that_is_no_share_is_refused(bar: float) -> None:
    with pytest.raises(UsageError) as caught:
        judge_run(tonight(STEADY), [], None, GateQuestion(at_least=bar))
    assert str(caught.value) == (f"a bar of {bar:g} is not between 0 and 1\n\nhint: give it as a share: --at-least 0.9")
