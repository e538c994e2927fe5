"""Two versions of a plugin, one of them worse, met by real runs: every view of them says the same, and names it."""

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from cases.loader import shipped_suites
from evalfarm.analysis.conversations.totals import FIGURES
from evalfarm.reports.conversations.changes import change, written
from evalfarm.reports.conversations.metrics import FLAG_WORDS
from evalfarm.web.version_page import WORDS

pytestmark = pytest.mark.slow

Until = Callable[[Callable[[], object], str], object]

AWAY = '"status_code: 503"'
#: Suite -> two of its cases, the tool that gets worse, its last line now and then, and where the plugin's version goes.
SUITES = {
    "bls": (
        ("--filter", "case=unemployment-rate", "--filter", "case=nonfarm-payroll", "--variant", "guided"),
        "fetch_bls_data",
        (
            'return {"series": [catalog.fetched(series_id) for series_id in series_ids]}',
            f'return {{"series": [{{"series_id": series_id, "error": {AWAY}}} for series_id in series_ids]}}',
        ),
        ('version: "1.0.0"', 'version: "1.1.0"'),
    ),
    "support": (
        ("--filter", "case=eligible-ordinary", "--filter", "case=final-sale-12-days"),
        "get_policy",
        (
            'return answers.get(("get_policy", policy_id), {"status": "unavailable", "policy_id": policy_id})',
            f'return {{"status": "unavailable", "policy_id": policy_id, "error": {AWAY}}}',
        ),
        ("  name: Support\n", '  name: Support\n  version: "1.1.0"\n'),
    ),
}


def worse(suite: str, folder: Path) -> Path:
    """A copy of a shipped suite whose plugin is of a later version, in which one tool has nothing any more."""
    _, _, line, version = SUITES[suite]
    file = Path(shutil.copytree(shipped_suites()[suite].parent, folder / suite)) / "suite.yaml"
    for path, (before, after) in ((file.parent / "server.py", line), (file, version)):
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1
        path.write_text(text.replace(before, after), encoding="utf-8")
    return file


def run(place: Any, suite: str, *words: str) -> str:
    """Run a suite to its end at every level: the run's id."""
    ended = place.run("run", suite, "--model", "sim-careful", *words)
    assert ended.code in (0, 3), ended.err  # 3: of what has nothing any more not every answer can be judged
    return str(ended.err.split()[1].rstrip(":"))


def exported(place: Any, plugin: str) -> dict[str, dict[str, Any]]:
    """The rows of a plugin's versions, by the number of the version; CSV and JSON are held to say the same."""
    words = ("export", "versions", "--filter", f"plugin={plugin}")
    rows = json.loads(place.run(*words, "--json").out)
    table = list(csv.DictReader(io.StringIO(place.run(*words).out)))
    assert [{name: row[name] or None for name in FIGURES} for row in table] == [
        {name: None if row[name] is None else str(row[name]).lower() for name in FIGURES} for row in rows
    ]
    return {row["plugin_version"]: row for row in rows}


def test_what_got_worse_is_named_alike_wherever_one_looks(place: Any, tmp_path: Path, wait_until: Until) -> None:
    runs = {}
    for suite, (words, *_) in SUITES.items():
        runs[suite] = run(place, suite, *words), run(place, str(worse(suite, tmp_path)), *words)
    found = {}
    for suite, (good, bad) in runs.items():
        told = place.run("metrics", bad, "--against", good, "--json")
        assert told.code == 0, told.err
        found[suite] = json.loads(told.out)
    serving = place.start("web", "--port", "0")
    try:
        told = re.search(r"at (http://\S+)/ until", serving.hear("Serving"))
        assert told
        with httpx.Client(base_url=told[1], timeout=60) as console:
            wait_until(lambda: all(bad in console.get("/").text for _, bad in runs.values()), "that both are shown")
            for suite in SUITES:
                holds(place, console, suite, found[suite])
    finally:
        serving.interrupt(group=False)
        serving.end()


def holds(place: Any, console: httpx.Client, suite: str, metrics: dict[str, Any]) -> None:
    """Hold that the metrics, the export, the page and the list say the same of two versions of a suite's plugin."""
    plugin, tool = metrics["versions"][0]["plugin"], SUITES[suite][1]
    rows = exported(place, plugin)
    (bad,) = (row for version, row in rows.items() if version == "1.1.0")
    (good,) = (row for version, row in rows.items() if version != "1.1.0")
    for group, row in ((metrics["all"], bad), (metrics["against"]["all"], good)):
        assert group["figures"] == pytest.approx({name: row[name] for name in FIGURES}, rel=1e-9)
        assert (group["conversations"], group["latest"]) == (row["conversations"], row["latest"])

    page = console.get(f"/versions/{plugin}", params={"version": bad["version"], "against": good["version"]}).text
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    for name, word in WORDS.items():
        moved = change(name, bad[name], good[name])
        shown = f"{word} {written(name, bad[name])} was {written(name, good[name])}"
        assert f"{shown} {'no change' if moved == 'none' else moved}" in text

    for item in metrics["attention"]:
        assert f"{FLAG_WORDS[item['flag']]} {item['subject']} {item['told']} conversation" in text
        assert f'href="/conversations/{item["conversation"]}"' in page
    assert len(metrics["attention"]) == page.partition('id="attention"')[2].partition("</section>")[0].count(
        'th scope="row"'
    )
    assert [item["subject"] for item in metrics["attention"] if item["flag"] == "tool_fails"] == [tool]

    tools = json.loads(place.run("export", "tools", "--json", "--filter", f"version={bad['version']}").out)
    calls = {(one["tool"], one["calls"], one["failing_calls"]) for one in tools}
    assert calls == {(one["name"], one["calls"], one["failing_calls"]) for one in metrics["tools"]}
