import re
from pathlib import Path
from typing import Any

import pytest
import redis

from evalfarm.contracts.calibration import Calibration, ErrorRates, LengthEffect, PairFigures, Share, Uses
from evalfarm.contracts.figures import Measure
from evalfarm.contracts.judging import JudgeIdentity
from evalfarm.contracts.verdict import Rate
from evalfarm.errors import BrokerUnavailable, StoreUnavailable
from evalfarm.exporter.reading import FORGOTTEN_S, Reader
from evalfarm.exporter.seen import NightOf
from evalfarm.judgings import Judgings
from evalfarm.objects import Objects
from evalfarm.runstate import Ended, Ledger, Limits, ModelLimits, check_server, connect
from evalfarm.store import Store
from tests.made_runs import DIGESTS

NIGHT = NightOf("small", "nightly")


def test_an_empty_farm_is_read_without_complaint(farm: Any) -> None:
    seen = farm.reader().look()
    assert (seen.nights, seen.judges, seen.took, dict(seen.failed)) == ((), (), (), {})
    assert dict(seen.read_at) == {"ledger": 1000.0, "store": 1000.0}


def test_the_newest_finished_run_is_told_and_the_newest_started_beside_it(farm: Any) -> None:
    farm.seal("night-1", created_at=100.0)
    farm.seal("night-2", created_at=200.0)
    farm.begin("night-3", created_at=300.0)
    Ledger(farm.client, "night-3").create(3, "sha256:0")
    (night,) = farm.reader().look().nights
    assert (night.of, night.started.run, night.finished.run) == (NIGHT, "night-3", "night-2")


def test_runs_that_are_neither_sealed_nor_known_to_redis_are_counted_for_a_week(farm: Any) -> None:
    farm.seal("sealed")
    farm.begin("open")
    Ledger(farm.client, "open").create(3, "sha256:0")
    farm.begin("lost")
    reader = farm.reader()
    assert reader.look().untended == 1
    farm.client.flushall()
    assert reader.look().untended == 2
    farm.clock.now += FORGOTTEN_S
    assert reader.look().untended == 0


def test_a_confirm_run_is_no_night_and_what_it_took_counts(farm: Any) -> None:
    farm.seal("night-1", created_at=100.0)
    farm.seal("again", created_at=200.0, label="confirm/night-1")
    seen = farm.reader().look()
    assert [night.started.run for night in seen.nights] == ["night-1"]
    assert [one.tally.run for one in seen.took] == ["again", "night-1"]


def test_a_run_that_was_stopped_early_gives_no_figures(farm: Any) -> None:
    farm.seal("night-1", created_at=100.0)
    stopped = farm.seal("night-2", created_at=200.0)
    farm.store.put_summary(stopped.model_copy(update={"finished": False}))
    (night,) = farm.reader().look().nights
    assert (night.started.run, night.finished.run) == ("night-2", "night-1")


def test_the_last_word_on_the_newest_run_that_was_judged_counts(farm: Any, gate: Any) -> None:
    farm.seal("night-1", created_at=100.0)
    farm.seal("night-2", created_at=200.0)
    farm.seal("night-3", created_at=300.0)
    farm.outcomes.add_gate(gate("night-2", 250.0, verdict="inconclusive"))
    farm.outcomes.add_gate(gate("night-2", 260.0, verdict="regressed"))
    farm.outcomes.add_gate(gate("night-1", 900.0))  # somebody looks again at an older one
    (night,) = farm.reader().look().nights
    assert (night.gate.run, night.gate.verdict) == ("night-2", "regressed")


def test_two_schedules_of_one_suite_hide_nothing_of_each_other(farm: Any, gate: Any, told: Any) -> None:
    farm.seal("plain-1", created_at=100.0, label="plain")
    farm.outcomes.add_gate(gate("plain-1", 150.0, verdict="regressed"))
    farm.seal("guided-1", created_at=200.0, label="guided")
    farm.outcomes.add_gate(gate("guided-1", 250.0, variant="guided"))
    seen = farm.reader().look()
    assert [night.started.run for night in seen.nights] == ["guided-1", "plain-1"]
    verdicts = {name: value for name, value in told(seen, "gate_verdict").items() if value}
    named = 'suite="small",queue="nightly",model="m",harness="loop"'
    assert verdicts == {
        f'gate_verdict{{{named},variant="guided",outcome="held"}}': 1,
        f'gate_verdict{{{named},variant="plain",outcome="regressed"}}': 1,
    }
    night = '{suite="small",queue="nightly"}'
    assert told(seen, "gate_timestamp", "last_run_t") == {
        f"gate_timestamp_seconds{night}": 250.0,
        f"last_run_timestamp_seconds{night}": 200.0,
    }


def test_of_one_arm_under_two_labels_the_newest_verdict_is_told(farm: Any, gate: Any, told: Any) -> None:
    for run, at, verdict in (("a", 100.0, "regressed"), ("b", 200.0, "held")):
        farm.seal(run, created_at=at, label=run)
        farm.outcomes.add_gate(gate(run, at + 50, verdict=verdict))
    verdicts = [name for name, value in told(farm.reader().look(), "gate_verdict").items() if value]
    assert len(verdicts) == 1
    assert 'outcome="held"' in verdicts[0]


def test_a_suite_that_nobody_runs_any_more_is_forgotten_and_what_it_took_is_not(farm: Any) -> None:
    farm.seal("night-1", created_at=100.0)
    farm.clock.now = 100.0 + FORGOTTEN_S
    seen = farm.reader().look()
    assert (seen.nights, [one.tally.run for one in seen.took]) == ((), ["night-1"])


def test_what_a_run_takes_is_told_while_it_goes_on_and_when_it_is_sealed(farm: Any, tally: Any) -> None:
    farm.begin("night-1")
    ledger = Ledger(farm.client, "night-1")
    ledger.create(3, "sha256:0")
    reader = farm.reader()
    ledger.take(1, 60.0)
    ledger.claim(0, "token", 60.0)
    ledger.end(Ended(0, 1, verdict="passed", row=b"{}", final=True, backoff_s=1.0, max_attempts=3))
    (open_,) = reader.look().took
    assert (open_.tally.attempts.started, open_.tally.arms[0].closed) == (1, {"passed": 1})

    farm.outcomes.put_tally(tally("night-1"))
    ledger.delete()
    (sealed,) = reader.look().took
    assert sealed.tally == tally("night-1")


def test_a_counter_does_not_fall_when_redis_forgets_a_run_or_a_run_is_removed(farm: Any) -> None:
    farm.seal("night-1", created_at=100.0)
    farm.begin("night-2")
    ledger = Ledger(farm.client, "night-2")
    ledger.create(3, "sha256:0")
    reader = farm.reader()
    before = reader.look().took
    farm.client.flushall()
    for key in ("manifest.json", "summary.json", "tally.json"):
        farm.store.objects.delete(f"runs/night-1/{key}")
    after = reader.look()
    assert after.took == before
    assert [night.started.run for night in after.nights] == ["night-2"]


def test_a_summary_that_was_written_anew_is_read_anew(farm: Any) -> None:
    first = farm.seal("night-1", passed=3)
    reader = farm.reader()
    assert reader.look().nights[0].finished == first
    second = first.model_copy(update={"notes": ("judged again",)})
    farm.store.put_summary(second)
    assert reader.look().nights[0].finished == second


class Counting(Objects):
    """A store's objects that count what is read of them."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.reads: list[str] = []

    def read(self, key: str) -> bytes | None:
        self.reads.append(key)
        return super().read(key)


def test_a_second_look_reads_no_document_that_cannot_have_changed(farm: Any, gate: Any) -> None:
    objects = Counting("memory://")
    farm.store.objects = farm.store._objects = objects
    farm.seal("night-1", created_at=100.0)
    farm.seal("night-2", created_at=200.0)
    farm.outcomes.add_gate(gate("night-2", 250.0))
    reader = farm.reader()
    first = reader.look()
    assert "runs/night-2/summary.json" in objects.reads
    objects.reads.clear()
    second = reader.look()
    assert (second.nights, second.took, objects.reads) == (first.nights, first.took, [])


def test_a_ledger_that_cannot_be_reached_leaves_the_store_s_half(farm: Any) -> None:
    farm.seal("night-1")
    gone = connect("redis://127.0.0.1:1/0")
    seen = Reader(farm.store, gone, Limits(), farm.clock).look()
    assert (set(seen.failed), seen.farm, dict(seen.read_at)) == ({"ledger"}, None, {"store": 1000.0})
    assert [night.finished.run for night in seen.nights if night.finished] == ["night-1"]


class Unreachable(Objects):
    """A store's objects that are away while `away` is true."""

    away = False

    def names(self, prefix: str) -> list[str]:
        if self.away:
            raise StoreUnavailable("the store is away")
        return super().names(prefix)


def test_a_store_that_cannot_be_reached_leaves_what_was_known_and_says_so(client: redis.Redis, farm: Any) -> None:
    objects = Unreachable("memory://")
    farm.store.objects = farm.store._objects = objects
    farm.seal("night-1")
    reader = farm.reader()
    before = reader.look()
    objects.away, farm.clock.now = True, 1100.0
    after = reader.look()
    assert dict(after.failed) == {"store": "the store is away"}
    assert (after.nights, after.took) == (before.nights, before.took)
    assert dict(after.read_at) == {"ledger": 1100.0, "store": 1000.0}


def test_a_manifest_of_another_version_is_passed_over(farm: Any) -> None:
    farm.seal("night-1")
    farm.store.objects.write("runs/future/manifest.json", b'{"schema_version": 99}')
    seen = farm.reader().look()
    assert (list(seen.manifests), dict(seen.failed)) == (["night-1"], {})


@pytest.mark.parametrize("url", ["memory://", "file://{tmp}/store"])
def test_a_key_has_a_version_that_changes_with_its_content(url: str, tmp_path: Any) -> None:
    objects = Store(url.format(tmp=tmp_path)).objects
    assert objects.version("a") is None
    objects.write("a", b"one", create=False)
    first = objects.version("a")
    assert first is not None
    assert objects.version("a") == first
    objects.write("a", b"another", create=False)
    assert objects.version("a") not in (None, first)


def calibration(**changes: Any) -> Calibration:
    """A calibration on held-out labels of a judge that nothing is known of but who it is."""
    nothing = Share(value=None, low=None, high=None, hits=0, of=0)
    told: dict[str, Any] = {
        "id": "0000000000001-a",
        "at": 1.0,
        "judge": JUDGE,
        "judge_digest": JUDGE.digest,
        "simulated": True,
        "suite": "small",
        "suite_version": "1",
        "labels": "sha256:1",
        "purpose": "held-out",
        "uses": Uses(times=1, judges=1, versions=1),
        "answers": 60,
        "disputed": 0,
        "adjudicated": 0,
        "repeats": 1,
        "decided": 60,
        "abstained": nothing,
        "failed": nothing,
        "overall": ErrorRates(name="all", answers=60, false_accept=nothing, false_reject=nothing),
        "false_accept_at_most": 0.04,
        "raw_agreement": 0.98,
        "kappa": Measure(value=None, low=None, high=None),
        "human_pass_share": 0.5,
        "by_category": (),
        "by_kind": (),
        "by_length": (),
        "by_criterion": (),
        "length": LengthEffect(longer_passes=None, p=None),
        "pairs": PairFigures(pairs=0, failed=0, order_decided=nothing, first_wins=0, p=None, right=nothing),
        "self_disagreement": Rate(value=None, low=None, high=None),
        "findings": (),
        "requests": 60,
        "cost_usd": None,
    }
    return Calibration(**told | changes)


JUDGE = JudgeIdentity(model="judge-a", prompt_version="1", prompt="sha256:p", rubrics={"tone": "sha256:r"})
BARE = JUDGE.model_copy(update={"rubrics": {}})
JUDGED = {"judge/judge-a": BARE.digest, "rubric/tone": "sha256:r"}


@pytest.mark.parametrize(
    ("changes", "digests", "calibrated"),
    [
        ({}, JUDGED, 1.0),
        ({"findings": ("LENIENT: passes 9 of 60 answers",)}, JUDGED, 0.0),
        ({"purpose": "calibration"}, JUDGED, 0.0),
        ({}, JUDGED | {"rubric/tone": "sha256:another"}, 0.0),
    ],
    ids=["as it is", "with a fault", "on labels that it was tuned on", "with another rubric"],
)
def test_a_judge_is_calibrated_where_held_out_labels_show_no_fault_of_it_as_it_is(
    farm: Any, told: Any, changes: dict[str, Any], digests: dict[str, str], calibrated: float
) -> None:
    farm.seal("night-1", digests=DIGESTS | digests)
    reader = farm.reader()
    assert told(reader.look(), "judge_calibrated") == {'judge_calibrated{suite="small",model="judge-a"}': 0.0}
    Judgings(farm.store.objects).put_calibration(calibration(**changes))
    found = told(reader.look(), "judge_")
    assert found.pop('judge_calibrated{suite="small",model="judge-a"}') == calibrated
    known = changes.get("purpose") != "calibration" and digests == JUDGED
    assert found == ({'judge_agreement_ratio{suite="small",model="judge-a"}': 0.98} if known else {})


def test_the_exporter_needs_no_more_of_redis_than_the_guide_grants_it(
    farm: Any, redis_url: str, client: redis.Redis
) -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/watching.md").read_text(encoding="utf-8")
    (granted,) = re.findall(r"^ACL SETUSER exporter (.*)$", guide, flags=re.MULTILINE)
    farm.begin("night-1")
    Ledger(client, "night-1").create(3, "sha256:0")
    client.execute_command("ACL", "SETUSER", "exporter", *granted.replace("PASSWORD", "secret").split())
    try:
        with connect(redis_url.replace("unix://", "unix://exporter@") + "?password=secret") as restricted:
            check_server(restricted)
            with pytest.raises(BrokerUnavailable, match="refused a command"):
                Ledger(restricted, "night-1").cancel()
            limits = Limits(models={"gpt": ModelLimits(concurrency=1)})
            seen = Reader(farm.store, restricted, limits, farm.clock).look()
    finally:
        client.execute_command("ACL", "DELUSER", "exporter")
    assert dict(seen.failed) == {}
    assert [view.run for view in seen.farm.runs] == ["night-1"]
