"""A plugin's working tree measured before it is released: in the real Codex, until the released one is put back."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cases.loader import shipped_suites

pytestmark = pytest.mark.slow

#: What the released plugin says nothing of: without it, the simulated model takes an ID from its own knowledge.
SKILL = """\
---
name: catalog
description: Fetch only series IDs that resolve returned, never one from your own knowledge.
---
Say that the data is not available where resolve returns no candidate.
"""
GAP = ("--harness", "codex", "--variant", "plain", "--filter", "case=consumer-price-index", "--model", "sim-careful")
BY_HEART = {"series_ids": ["CUUR0000SA0"]}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A working tree of the plugin BLS, with a skill that the released one does not have."""
    path = Path(shutil.copytree(shipped_suites()["bls"].parent / "plugin", tmp_path / "checkout"))
    said = json.loads((path / ".codex-plugin/plugin.json").read_text(encoding="utf-8"))
    (path / ".codex-plugin/plugin.json").write_text(json.dumps({**said, "version": "1.1.0", "skills": "./skills/"}))
    (path / "skills/catalog").mkdir(parents=True)
    (path / "skills/catalog/SKILL.md").write_text(SKILL, encoding="utf-8")
    return path


def fetched(place: Any, run: str) -> list[Any]:
    """What the real Codex asked of the plugin's `fetch_bls_data` in the run's one trial."""
    trace = place.store.get_trace(run, 0, 1)
    return [call.arguments for call in trace.served_calls if call.name == "fetch_bls_data"]


def test_a_patched_plugin_is_what_runs_take_until_it_is_restored_and_an_open_run_keeps_what_it_has(
    place: Any, tree: Path
) -> None:
    patched = place.run("plugin", "patch", str(tree), "--json")
    assert patched.code == 0, patched.err
    patch = json.loads(patched.out)
    shutil.rmtree(place.home / "homes" / patch["installed"]["home"])
    started = place.start("run", "bls", *GAP, "--workers", "0")
    kept = started.run_id()
    said, rebuilt = started.hear("PATCHED: "), started.hear("PATCH REBUILT: ")
    assert said.startswith(
        f"PATCHED: plugin BLS is a working tree, {patch['digest'][7:19]} (version 1.1.0), in place of"
    )
    assert "was cleared away; what attempts were cloned from holds the same patch" in rebuilt
    started.interrupt(group=False)
    assert started.end().code == 130

    assert place.run("plugin", "patch", "--restore").code == 0
    ended = place.run("run", "bls", *GAP)
    assert ended.code == 0, ended.err
    assert "PATCH" not in ended.out + ended.err
    released = ended.err.split()[1].rstrip(":")
    resumed = place.run("resume", kept)
    assert resumed.code == 0, resumed.err
    assert "PATCHED: plugin BLS is a working tree" in resumed.out
    place.falls_quiet()

    assert {run: fetched(place, run) for run in (released, kept)} == {released: [BY_HEART], kept: []}
    assert {run: place.summary(run).passed for run in (released, kept)} == {released: 0, kept: 1}
    note = place.summary(kept).manifest.patch
    assert (note.digest, note.released, len(note.rebuilt)) == (patch["digest"], patch["released"], 1)
    assert place.summary(released).manifest.patch is None
