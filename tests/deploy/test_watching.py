"""What watches a deployed farm: rules that fire when they should, and that ask for metrics which there are."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalfarm.exporter import catalogue
from evalfarm.exporter.families import Metric
from tests.prometheus_tools import program

ALERTS = {
    "QualityRegressed",
    "UnsteadyPlugin",
    "LatencyRegressed",
    "NightlyMissing",
    "RunStalled",
    "InfraFailures",
    "DuplicateSpend",
    "BudgetBurn",
    "ModelPaused",
    "JudgeUncalibrated",
    "ExporterDown",
    "RedisMemory",
}
#: What Prometheus tells of a target by itself.
ITS_OWN = {"up"}
#: What a scrape adds to every series.
OF_A_TARGET = {"job", "instance"}
NAME = re.compile(r"\b(?:[a-z_]+:)?evalfarm_[a-z0-9_]+(?::[a-z0-9_]+)?|\bup\b")
SELECTED = re.compile(r"((?:[a-z_]+:)?evalfarm_[a-z0-9_]+(?::[a-z0-9_]+)?)\{([^}]*)\}")


def exported() -> dict[str, Metric]:
    """Every metric of the exporter by its name."""
    told = vars(catalogue).values()
    single = [one for one in told if isinstance(one, Metric)]
    of_intervals = [metric for one in told if isinstance(one, tuple) for metric in one if isinstance(metric, Metric)]
    return {metric.name: metric for metric in single + of_intervals}


def rules(root: Path) -> list[dict[str, Any]]:
    files = sorted((root / "deploy/prometheus/rules").glob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def alerts(root: Path) -> list[dict[str, Any]]:
    return [rule for rule in rules(root) if "alert" in rule]


def rule_tests(root: Path) -> Iterator[dict[str, Any]]:
    for file in sorted((root / "deploy/prometheus/tests").glob("*.test.yml")):
        yield from yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]


def dashboard(root: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((root / "deploy/grafana/dashboards/evalfarm.json").read_text(encoding="utf-8"))
    return told


def queries(root: Path) -> list[str]:
    return [target["expr"] for panel in dashboard(root)["panels"] for target in panel.get("targets", ())]


def checked(*argv: str, folder: Path) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def unknown_names(expression: str, known: set[str]) -> set[str]:
    return set(NAME.findall(re.sub(r'"[^"]*"', '""', expression))) - known - ITS_OWN


def test_prometheus_takes_its_configuration_and_every_rule(root: Path) -> None:
    checked(program("promtool"), "check", "config", "prometheus.yml", folder=root / "deploy/prometheus")


def test_alertmanager_takes_its_configuration(root: Path) -> None:
    checked(program("amtool"), "check-config", "alertmanager.yml", folder=root / "deploy/prometheus")


def test_every_rule_fires_and_does_not_fire_as_its_tests_say(root: Path) -> None:
    folder = root / "deploy/prometheus/tests"
    files = sorted(file.name for file in folder.glob("*.test.yml"))
    told = checked(program("promtool"), "test", "rules", *files, folder=folder)
    assert told.count("SUCCESS") == len(files)


def test_there_is_an_alert_for_everything_that_is_to_be_known(root: Path) -> None:
    assert {rule["alert"] for rule in alerts(root)} == ALERTS


@pytest.mark.parametrize("alert", sorted(ALERTS))
def test_an_alert_is_tested_to_fire_and_not_to_fire(root: Path, alert: str) -> None:
    expected = [
        case.get("exp_alerts", [])
        for test in rule_tests(root)
        for case in test["alert_rule_test"]
        if case["alertname"] == alert
    ]
    assert any(expected)
    assert not all(expected)


@pytest.mark.parametrize("alert", sorted(ALERTS))
def test_an_alert_waits_says_how_bad_it_is_and_where_to_read_on(root: Path, alert: str) -> None:
    headings = re.findall(r"^## (\w+)$", (root / "docs/runbook.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert alert in headings
    for rule in alerts(root):
        if rule["alert"] == alert:
            assert re.fullmatch(r"\d+m", rule["for"])
            assert rule["labels"]["severity"] in {"page", "ticket"}
            assert {"summary", "description"} < set(rule["annotations"])
            assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{alert.lower()}"


def test_only_a_fall_in_quality_wakes_somebody_and_only_where_an_interval_shows_it(root: Path) -> None:
    (page,) = [rule for rule in alerts(root) if rule["labels"]["severity"] == "page"]
    assert page["alert"] == "QualityRegressed"
    assert unknown_names(page["expr"], set()) == {"evalfarm_gate_verdict", "evalfarm_gate_change_ratio_upper"}


def test_rules_and_dashboards_ask_only_for_metrics_that_there_are(root: Path) -> None:
    known = set(exported()) | {rule["record"] for rule in rules(root) if "record" in rule}
    asked = [rule["expr"] for rule in rules(root)] + queries(root)
    assert {query: names for query in asked if (names := unknown_names(query, known))} == {}


def test_rules_and_dashboards_select_by_labels_that_the_metric_has(root: Path) -> None:
    wrong = []
    for query in [rule["expr"] for rule in rules(root)] + queries(root):
        for name, selectors in SELECTED.findall(query):
            asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selectors))
            has = set(exported()[name].labels) if name in exported() else {"suite", "queue"}
            wrong += [(query, label) for label in asked - has - OF_A_TARGET]
    assert wrong == []


def test_every_query_of_the_dashboard_is_one(root: Path, tmp_path: Path) -> None:
    asked = queries(root)
    assert len(asked) > 40
    written = [{"record": f"query:{at}", "expr": query} for at, query in enumerate(asked)]
    groups = {"groups": [{"name": "dashboard", "rules": written}]}
    (tmp_path / "dashboard.yml").write_text(yaml.safe_dump(groups))
    checked(program("promtool"), "check", "rules", "dashboard.yml", folder=tmp_path)


def test_the_dashboard_reads_from_the_data_source_that_is_provisioned(root: Path) -> None:
    file = root / "deploy/grafana/provisioning/datasources/prometheus.yml"
    (source,) = yaml.safe_load(file.read_text(encoding="utf-8"))["datasources"]
    targets = [target for panel in dashboard(root)["panels"] for target in panel.get("targets", ())]
    assert {target["datasource"]["uid"] for target in targets} == {source["uid"]}


def test_panels_lie_beside_one_another_and_each_says_what_it_shows(root: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard(root)["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["description"]
    assert max(x for x, _ in taken) == 23


def test_the_guide_lists_every_metric_and_no_other(root: Path) -> None:
    guide = (root / "docs/guides/watching.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in guide.partition("## Metrics")[2].splitlines() if line.startswith("| "))
    listed = {name for name in re.findall(r"`([a-z0-9_]+)`", table) if not name.startswith("_")} - {"evalfarm_"}
    ends = {name.removeprefix("evalfarm_") for name in exported()}
    assert listed == {name for name in ends if not name.endswith(("_lower", "_upper"))}
