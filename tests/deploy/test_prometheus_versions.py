"""The files for Prometheus and Alertmanager mean the same to the versions that are deployed and to the tests'."""

import re
from pathlib import Path
from typing import Any

import yaml

from evalfarm.exporter.families import CONTENT_TYPE


def rules(root: Path) -> list[dict[str, Any]]:
    files = sorted((root / "deploy/prometheus/rules").glob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def test_the_page_speaks_of_the_versions_that_are_deployed(compose: dict[str, Any], root: Path) -> None:
    page = (root / "docs/deployment.md").read_text(encoding="utf-8")
    for name in ("Prometheus", "Alertmanager"):
        image, _, version = compose["services"][name.lower()]["image"].partition(":v")
        assert image == f"prom/{name.lower()}"
        assert f"{name} {version.rpartition('.')[0]}" in page


def test_a_scrape_names_its_format_as_version_3_demands() -> None:
    assert re.fullmatch(r"text/plain; version=\d\.\d\.\d; charset=utf-8", CONTENT_TYPE)


def test_no_expression_has_what_another_version_reads_otherwise(root: Path) -> None:
    for rule in rules(root):
        matched = re.findall(r"[=!]~\s*\"([^\"]*)\"", rule["expr"])
        assert not [one for one in matched if "." in one], rule
        assert not re.search(r"\b(holt_winters|double_exponential_smoothing|info|ts_of_\w+)\(", rule["expr"]), rule
        assert re.fullmatch(r"[A-Za-z_:][A-Za-z0-9_:]*", rule.get("record") or rule["alert"])


def test_ranges_hold_many_samples_so_that_it_does_not_matter_whether_the_oldest_counts(root: Path) -> None:
    told = yaml.safe_load((root / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    assert told["global"]["scrape_interval"] == "30s"
    ranges = {span for rule in rules(root) for span in re.findall(r"\[([^\]]+)\]", rule["expr"])}
    assert ranges == {"1h"}


def test_the_configuration_has_no_setting_that_only_one_of_them_knows(root: Path) -> None:
    told = yaml.safe_load((root / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    assert set(told) == {"global", "rule_files", "alerting", "scrape_configs"}
    assert set(told["global"]) == {"scrape_interval", "scrape_timeout", "evaluation_interval"}
    assert [set(job) for job in told["scrape_configs"]] == [{"job_name", "static_configs", "sample_limit"}]
    assert [set(manager) for manager in told["alerting"]["alertmanagers"]] == [{"static_configs"}]


def test_matchers_are_read_alike_by_the_old_parser_and_the_new(root: Path) -> None:
    told = yaml.safe_load((root / "deploy/prometheus/alertmanager.yml").read_text(encoding="utf-8"))
    for route in told["route"]["routes"]:
        for matcher in route["matchers"]:
            assert re.fullmatch(r'[a-z_]+ ?(=|!=|=~|!~) ?"[a-z|]+"', matcher)
