from pathlib import Path

import pytest

from evalfarm.contracts.calibration import LabelsUse
from evalfarm.contracts.drawn import Draw, DrawnArm, Stratum
from evalfarm.contracts.judging import (
    Adjudication,
    JudgingItem,
    JudgingPlan,
    JudgingTally,
    Opinion,
    TrialOpinions,
)
from evalfarm.errors import StoreUnavailable
from evalfarm.judgings import Judgings
from evalfarm.objects import Objects

PLAN = JudgingPlan(run="r", items=(JudgingItem(index=3, attempt=1),))


@pytest.fixture
def kept() -> Judgings:
    return Judgings(Objects("memory://"))


def opinions(attempt: int, failure: str = "HTTP 503") -> TrialOpinions:
    opinion = Opinion(judge="j", failure=failure, outage=True, cost_usd=0.0)
    return TrialOpinions(run="r", index=3, judged=1, attempt=attempt, opinions=(opinion,))


def decision(at: float, value: str = "PASS") -> Adjudication:
    return Adjudication.model_validate(
        {
            "suite": "s",
            "suite_version": "1",
            "case": "c",
            "answer": "Yes.",
            "labels": {"answer": "PASS", "judge": "FAIL"},
            "value": value,
            "why": "It is so.",
            "by": "me",
            "at": at,
        }
    )


def test_the_first_plan_of_a_judging_stays(kept: Judgings) -> None:
    assert kept.plan("r") is None
    assert kept.fix_plan(PLAN) == PLAN
    assert kept.fix_plan(JudgingPlan(run="r", items=())) == PLAN == kept.plan("r")


def test_the_first_draw_of_a_length_stays_and_shorter_ones_come_first(kept: Judgings) -> None:
    arm = DrawnArm(arm="m", passed=Stratum(answers=200, drawn=(4, 2)), failed=Stratum(answers=0))
    short, long = (Draw(run="r", each=each, seed=0, at=1.0, arms=(arm,)) for each in (20, 100))
    assert kept.draws("r") == ()
    assert (kept.fix_draw(long), kept.fix_draw(short)) == (long, short)
    assert kept.fix_draw(Draw(run="r", each=20, seed=0, at=2.0, arms=(arm,))) == short
    assert kept.draws("r") == (short, long)
    assert short.trials == (2, 4)


def test_every_attempt_is_kept_in_order_and_none_is_overwritten(kept: Judgings) -> None:
    assert [kept.put_opinions(opinions(number)) for number in (10, 2, 2)] == [True, True, False]
    assert not kept.put_opinions(opinions(10, "another failure"))
    assert kept.opinions("r", 3) == (opinions(2), opinions(10))
    assert kept.opinions("r", 4) == ()


def test_what_a_judge_wrote_is_kept_even_where_it_is_no_text(kept: Judgings) -> None:
    kept.put_opinions(opinions(1, "half of a \ud83d pair"))
    assert kept.opinions("r", 3)[0].opinions[0].failure == "half of a ? pair"


def test_a_tally_is_written_once(kept: Judgings) -> None:
    tally = JudgingTally(run="r", labels={"PASS": 1}, attempts=1, cost_usd=None, disagreements=0)
    kept.put_tally(tally)
    kept.put_tally(tally.model_copy(update={"attempts": 9}))
    assert kept.tally("r") == tally


def test_every_use_of_labels_is_counted(kept: Judgings) -> None:
    uses = [
        LabelsUse(labels="sha256:aa", purpose="held-out", judge=judge, model="m", at=at)
        for at, judge in ((1.0, "x"), (1.0, "y"), (2.0, "x"))
    ]
    counts = [len(kept.note_use(use)) for use in uses]
    assert counts == [1, 2, 3]
    assert len(kept.note_use(uses[0].model_copy(update={"labels": "sha256:bb"}))) == 1


def test_decisions_come_back_oldest_first_and_a_later_one_erases_none(kept: Judgings) -> None:
    decided = [decision(at, value) for at, value in ((30.0, "FAIL"), (1_000_000_000_000.0, "PASS"), (2.0, "PASS"))]
    for one in decided:
        kept.put_adjudication(one)
    assert kept.adjudications("s") == (decided[2], decided[0], decided[1])
    assert kept.adjudications("other") == ()


def test_what_does_not_read_is_said_to_be_damaged(tmp_path: Path) -> None:
    objects = Objects(tmp_path.as_uri())
    objects.write("runs/r/judging/plan.json", b"{}")
    with pytest.raises(StoreUnavailable, match=r"runs/r/judging/plan\.json .* is no JudgingPlan"):
        Judgings(objects).plan("r")
