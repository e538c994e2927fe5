import re
import subprocess
from collections.abc import Callable
from typing import Any

from evalfarm.contracts.figures import Measure
from evalfarm.exporter import catalogue
from evalfarm.exporter.catalogue import OTHER
from evalfarm.exporter.families import Metric
from evalfarm.exporter.farm import projected_usd
from evalfarm.exporter.page import page
from evalfarm.exporter.seen import Seen
from evalfarm.runstate import Ledger, Limits, ModelLimits
from evalfarm.runstate.throttle import control_key

Told = Callable[..., dict[str, float]]

#: What may stand in a label: names of a suite's author, the queues, closed sets of the exporter's own.
ALLOWED = {"suite", "model", "harness", "variant", "outcome", "queue", "kind"}


def metrics() -> list[Metric]:
    found: list[Metric] = []
    for value in vars(catalogue).values():
        found += [value] if isinstance(value, Metric) else []
        found += value if isinstance(value, tuple) and value and isinstance(value[0], Metric) else []
    return found


def test_labels_are_bounded_and_no_trial_case_worker_or_run_is_one() -> None:
    strange = {metric.name: set(metric.labels) - ALLOWED for metric in metrics()}
    assert {name: labels for name, labels in strange.items() if labels} == {
        "evalfarm_last_run_info": {"run"},
        "evalfarm_schedule_due_info": {"schedule"},
        "evalfarm_build_info": {"version"},
    }


def test_a_counter_ends_in_total_and_nothing_else_does() -> None:
    assert [m.name for m in metrics() if (m.kind == "counter") != m.name.endswith("_total")] == []


def test_every_metric_has_a_name_of_its_own() -> None:
    names = [metric.name for metric in metrics()]
    assert sorted(set(names)) == sorted(names)


def test_what_runs_took_is_summed_over_all_of_them(seen_of: Any, took: Any, told: Told, arm_text: str) -> None:
    seen = seen_of(took=(took("a"), took("b")))
    night = 'suite="small",queue="nightly"'
    assert told(seen, "attempts", "duplicate", "redispatched", "infra", "cost", "tokens", "trials") == {
        f"attempts_started_total{{{night}}}": 28,
        f'attempts_total{{{night},outcome="counted"}}': 16,
        f'attempts_total{{{night},outcome="infra_failed"}}': 6,
        f'attempts_total{{{night},outcome="lost"}}': 4,
        f'attempts_total{{{night},outcome="late"}}': 2,
        f'attempts_total{{{night},outcome="superseded"}}': 4,
        f"duplicate_executions_total{{{night}}}": 6,
        f"redispatched_total{{{night}}}": 6,
        f'infra_failures_total{{{arm_text},kind="model"}}': 6,
        f'infra_failures_total{{{arm_text},kind="lost"}}': 4,
        f"cost_dollars_total{{{arm_text}}}": 2.5,
        f'tokens_total{{{arm_text},kind="input"}}': 2000,
        f'tokens_total{{{arm_text},kind="cached"}}': 400,
        f'tokens_total{{{arm_text},kind="output"}}': 600,
        f'tokens_total{{{arm_text},kind="reasoning"}}': 80,
        f'trials_total{{{arm_text},outcome="passed"}}': 12,
        f'trials_total{{{arm_text},outcome="failed"}}': 4,
        f'trials_total{{{arm_text},outcome="infra_failed"}}': 2,
    }


def test_a_finished_run_is_told_by_its_figures_each_with_its_interval(farm: Any, told: Told, arm_text: str) -> None:
    summary = farm.seal("night-1")
    (cell,) = summary.cells
    arm, night = f"{{{arm_text}}}", '{suite="small",queue="nightly"}'
    found = told(farm.reader().look(), "pass", "disagreement", "flip", "cases", "latency", "run_", "last")
    assert found == {
        f"last_run_timestamp_seconds{night}": 900.0,
        f"last_finished_run_timestamp_seconds{night}": 900.0,
        'last_run_info{suite="small",queue="nightly",run="night-1"}': 1,
        f"pass_ratio{arm}": cell.pass_rate.value,
        f"pass_ratio_lower{arm}": cell.pass_rate.low,
        f"pass_ratio_upper{arm}": cell.pass_rate.high,
        f"disagreement_ratio{arm}": cell.disagreement.value,
        f"disagreement_ratio_lower{arm}": cell.disagreement.low,
        f"disagreement_ratio_upper{arm}": cell.disagreement.high,
        f"flip_ratio{arm}": 0.5,
        f"flip_ratio_lower{arm}": cell.flip_rate.low,
        f"flip_ratio_upper{arm}": cell.flip_rate.high,
        f"cases{arm}": 2,
        f"latency_p50_seconds{arm}": cell.latency_s.p50,
        f"latency_p95_seconds{arm}": cell.latency_s.p95,
        f"run_cost_dollars{arm}": 0.12,
        f'run_trials{{{arm_text},outcome="passed"}}': 5,
        f'run_trials{{{arm_text},outcome="failed"}}': 1,
        f'run_trials{{{arm_text},outcome="inconclusive"}}': 0,
        f'run_trials{{{arm_text},outcome="infra_failed"}}': 0,
        f'run_trials{{{arm_text},outcome="not_run"}}': 0,
    }


def test_arms_beyond_the_bound_are_told_together(seen_of: Any, took: Any, sampled: Any) -> None:
    seen = seen_of(took=(took("a"), took("b", model="x"), took("c", model="y"), took("d", suite="old", model="z")))
    found = {sample.labels: sample.value for sample in sampled(seen, 1) if sample.metric is catalogue.COST}
    assert found == {
        ("small", "nightly", "m", "loop", "plain"): 1.25,
        (OTHER, "nightly", OTHER, OTHER, OTHER): 3.75,
    }
    left_out = [sample.value for sample in sampled(seen, 1) if sample.metric is catalogue.ARMS_LEFT_OUT]
    assert left_out == [3]
    started = {sample.labels: sample.value for sample in sampled(seen, 1) if sample.metric is catalogue.STARTED}
    assert started == {("small", "nightly"): 42, (OTHER, "nightly"): 14}


def test_a_verdict_is_told_with_the_interval_that_it_rests_on(farm: Any, gate: Any, told: Told, arm_text: str) -> None:
    farm.seal("night-1")
    change, factor = Measure(value=-0.2, low=-0.3, high=-0.1), Measure(value=1.2, low=None, high=1.5)
    latency = {"factor": factor, "risen": True}
    farm.outcomes.add_gate(gate("night-1", 950.0, verdict="regressed", change=change, latency=latency))
    assert told(farm.reader().look(), "gate") == {
        'gate_timestamp_seconds{suite="small",queue="nightly"}': 950.0,
        f'gate_verdict{{{arm_text},outcome="held"}}': 0,
        f'gate_verdict{{{arm_text},outcome="regressed"}}': 1,
        f'gate_verdict{{{arm_text},outcome="improved"}}': 0,
        f'gate_verdict{{{arm_text},outcome="inconclusive"}}': 0,
        f"gate_change_ratio{{{arm_text}}}": -0.2,
        f"gate_change_ratio_lower{{{arm_text}}}": -0.3,
        f"gate_change_ratio_upper{{{arm_text}}}": -0.1,
        f"gate_latency_factor{{{arm_text}}}": 1.2,
        f"gate_latency_factor_upper{{{arm_text}}}": 1.5,
        f"gate_latency_risen{{{arm_text}}}": 1,
    }


def test_what_goes_on_is_told_by_suite_and_queue(farm: Any, told: Told) -> None:
    farm.begin("night-1")
    ledger = Ledger(farm.client, "night-1")
    ledger.create(3, "sha256:0")
    ledger.take(2, 60.0)
    ledger.claim(0, "token", 60.0)
    seen = farm.reader().look()
    night = '{suite="small",queue="nightly"}'
    found = told(seen, "open_runs", "trials_", "queue_depth", "slots", "workers")
    assert {name: value for name, value in found.items() if "_total" not in name} == {
        'queue_depth{queue="interactive"}': 0,
        'queue_depth{queue="judging"}': 0,
        'queue_depth{queue="nightly"}': 0,
        "slots": 0,
        "workers": 0,
        f"open_runs{night}": 1,
        f"trials_waiting{night}": 1,
        f"trials_in_flight{night}": 2,
    }
    (progress,) = told(seen, "run_progress").values()
    seconds, _ = farm.client.time()
    assert seconds - 30 <= progress <= seconds + 1


def test_a_model_s_cap_and_pause_are_told(farm: Any, told: Told) -> None:
    limits = {"gpt": ModelLimits(concurrency=8), "free": ModelLimits()}
    farm.limits = Limits(models=limits)
    seconds, _ = farm.client.time()
    farm.client.hset(control_key("gpt"), mapping={"cap": 4, "paused": (seconds + 100) * 1000})
    found = told(farm.reader().look(), "model_")
    paused = found.pop('model_paused_seconds{model="gpt"}')
    assert 90 < paused <= 100
    assert found == {
        'model_concurrency_limit{model="gpt"}': 8,
        'model_concurrency_cap{model="gpt"}': 4,
        'model_in_flight{model="gpt"}': 0,
        'model_in_flight{model="free"}': 0,
        'model_paused_seconds{model="free"}': 0,
    }


def test_a_budget_is_projected_once_enough_trials_are_closed_to_tell(farm: Any) -> None:
    ledger = Ledger(farm.client, "night-1")
    ledger.create(100, "sha256:0")
    farm.client.hset("f:{night-1}:meta", "budget", 20_000_000)
    farm.client.hset("f:{night-1}:cnt", mapping={"0|passed": 19, "cost": 9_500_000})
    view = ledger.view()
    assert view is not None
    assert projected_usd(view) == 20.0
    farm.client.hset("f:{night-1}:cnt", mapping={"0|passed": 20, "cost": 10_000_000})
    view = ledger.view()
    assert view is not None
    assert projected_usd(view) == 50.0


def test_without_a_ledger_nothing_is_said_of_what_goes_on(seen_of: Any, told: Told) -> None:
    seen: Seen = seen_of(failed={"ledger": "gone"}, read_at={"store": 5.0})
    assert {name for name in told(seen) if not name.startswith("build_info")} == {
        'exporter_source_up{kind="ledger"}',
        'exporter_source_up{kind="store"}',
        'exporter_source_timestamp_seconds{kind="store"}',
        "exporter_arms_left_out",
    }


def test_promtool_finds_no_fault_with_the_page(farm: Any, gate: Any, promtool: str) -> None:
    farm.seal("night-1")
    farm.outcomes.add_gate(gate("night-1", 950.0))
    text = page(farm.reader().look())
    assert len(re.findall("^# TYPE", text, flags=re.MULTILINE)) > 35
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
