import numpy as np
import pytest
from pydantic import TypeAdapter

from evalfarm.analysis.judgement.notes import ArmNote
from evalfarm.analysis.judgement.plans import ArmPower, Needs, Power, SelfChecks, plan_power, run_power, self_checks
from evalfarm.analysis.statistics.planning import TYPICAL_BETWEEN, TYPICAL_DISAGREEMENT, resolution
from evalfarm.errors import UsageError
from tests.made_runs import CODEX, LOOP, made_case, made_run, made_source

STUDY = [3] * 83 + [2] * 12 + [1] * 11 + [0] * 2


def test_a_plan_of_a_suite_is_reckoned_as_typical() -> None:
    assert plan_power("bls-108", 108, 3, 0.03) == Power(
        subject="bls-108",
        cases=108,
        repeats=3,
        effect=0.03,
        power=0.8,
        arms=(
            ArmPower(
                arm=None,
                measured=None,
                disagreement=TYPICAL_DISAGREEMENT,
                between=TYPICAL_BETWEEN,
                resolution=resolution(108, 3),
                needs=Needs(repeats_same_cases=10, cases_new_cases=675, repeats_new_cases=None),
                by_repeats=tuple(resolution(108, count) for count in (1, 3, 5, 10, 30)),
            ),
        ),
    )


def test_a_run_is_reckoned_by_the_disagreement_that_each_arm_showed_smoothed() -> None:
    steady = [3] * 108
    found = run_power(made_source("r", {LOOP: STUDY, CODEX: steady}).summary, 5, 0.05)
    assert [arm.arm for arm in found.arms] == [
        ArmNote("r", *LOOP, name="m · loop · plain"),
        ArmNote("r", *CODEX, name="m · codex · plain"),
    ]
    assert [arm.disagreement for arm in found.arms] == pytest.approx([(23 * 2 / 3 + 0.5) / 109, 0.5 / 109])
    assert found.arms[0].resolution == resolution(108, 5, disagreement=found.arms[0].disagreement)


def test_a_run_without_repeats_is_reckoned_as_typical() -> None:
    (arm,) = run_power(made_source("r", {LOOP: [1] * 20}, 1).summary, 5, 0.05).arms
    assert (arm.arm, arm.disagreement) == (None, TYPICAL_DISAGREEMENT)


@pytest.mark.parametrize("effect", [0.0, 1.0, 5.0, -0.03])
def test_an_effect_that_is_no_share_is_refused(effect: float) -> None:
    with pytest.raises(UsageError) as caught:
        plan_power("s", 5, 3, effect)
    assert str(caught.value) == (
        f"an effect of {effect:g} is not between 0 and 1\n\nhint: give it as a share: 0.03 for three percentage points"
    )


def test_a_plan_without_repeats_is_refused() -> None:
    with pytest.raises(UsageError, match="a plan of 5 cases × 0 repeats resolves nothing"):
        plan_power("s", 5, 0, 0.03)


def test_a_run_agrees_with_itself() -> None:
    rng = np.random.default_rng(1)
    trials = rng.random((60, 6)) < rng.beta(4, 1, size=(60, 1))
    cases = [
        made_case(f"c{at}", LOOP, int(row.sum()), 6).model_copy(
            update={"verdicts": tuple("passed" if passed else "failed" for passed in row)}
        )
        for at, row in enumerate(trials)
    ]
    found = self_checks(made_run("r", *cases), np.random.default_rng(0))
    assert (found.held, [one.check.splits for one in found.arms]) == (True, [20])
    adapter = TypeAdapter(SelfChecks)
    assert adapter.validate_json(adapter.dump_json(found)) == found


def test_a_run_of_which_one_repeat_went_wrong_does_not() -> None:
    cases = [made_case(f"c{at}", LOOP, 3, 4) for at in range(40)]
    found = self_checks(made_run("r", *cases), np.random.default_rng(0))
    assert (found.held, found.arms[0].held) == (False, False)


def test_a_run_without_repeats_cannot_be_checked() -> None:
    with pytest.raises(UsageError, match="a self-check of 1 repeats"):
        self_checks(made_source("r", {LOOP: [1, 0]}, 1).summary, np.random.default_rng(0))
