"""A run whose plugin was patched: another version, told apart, and no baseline for what is released."""

from typing import Any

import pytest

from evalfarm.analysis.judgement.comparability import Mismatch, Side, mismatches, refuse, refused
from evalfarm.analysis.judgement.gate import GateQuestion, judge_run
from evalfarm.analysis.judgement.notes import Source, run_note
from evalfarm.analysis.judgement.verdicts import Question, compare_runs
from evalfarm.contracts.patch import PluginPatch
from evalfarm.errors import UsageError
from tests.made_runs import DIGESTS, GUIDED, LOOP, made_manifest, made_source

TREE, OTHER, ELSE = ("sha256:" + digit * 64 for digit in "abe")
STEADY = [3] * 19 + [2]


def patch(digest: str = TREE, **changes: Any) -> PluginPatch:
    said = {
        "plugin": "Shop",
        "variants": ("plain",),
        "version": "1.1.0",
        "digest": digest,
        "released": OTHER,
        "released_version": "1.0.0",
        "patched_at": 1.0,
    }
    return PluginPatch.model_validate(said | changes)


def source(run: str, digest: str | None = None) -> Source:
    changed = {} if digest is None else {"patch": patch(digest), "digests": DIGESTS | {"files": digest, "plugin": ELSE}}
    return made_source(run, {LOOP: STEADY}, **changed)


def side(**changes: object) -> Side:
    return Side(made_manifest("r", [LOOP], **changes), LOOP, {})


def test_a_patch_is_a_setting_of_the_variants_that_run_it_alone() -> None:
    assert mismatches(side(), side(patch=patch())) == (Mismatch("patch", "(none)", TREE[:19]),)
    assert mismatches(side(patch=patch()), side(patch=patch(OTHER))) == (Mismatch("patch", TREE[:19], OTHER[:19]),)
    assert mismatches(side(patch=patch()), side(patch=patch(patched_at=2.0, rebuilt=("why",)))) == ()
    assert mismatches(side(), side(patch=patch(variants=("guided",)))) == ()


def test_whoever_allows_a_patch_allows_what_it_changes_and_no_more() -> None:
    found = mismatches(
        side(), side(patch=patch(), digests=DIGESTS | {"files": ELSE, "tools/plain": ELSE, "loop": ELSE})
    )
    assert [one.key for one in refused(found, (), ())] == ["files", "loop", "patch", "tools/plain"]
    assert [one.key for one in refused(found, (), ("patch",))] == ["loop"]
    with pytest.raises(UsageError) as caught:
        refuse("A and B", found)
    assert caught.value.hint == (
        "compare runs that share these, or say that you mean it: --allow-different loop --allow-different patch"
    )


def test_a_comparison_with_a_patched_run_is_refused_until_it_is_allowed() -> None:
    with pytest.raises(UsageError) as caught:
        compare_runs(source("released"), source("patched", TREE), Question())
    assert caught.value.hint.endswith("say that you mean it: --allow-different patch")
    found = compare_runs(source("released"), source("patched", TREE), Question(allowed={"patch"}))
    assert [run.patch for run in found.runs] == [None, patch(TREE)]
    assert [one.key for one in found.pairs[0].differing] == ["files", "patch", "plugin"]
    again = compare_runs(source("first", TREE), source("second", TREE), Question())
    assert again.pairs[0].differing == ()


def test_a_patched_run_is_held_against_what_is_released_and_never_the_other_way() -> None:
    released = [source(f"night-{n}") for n in range(1, 6)]
    found = judge_run(source("tonight", TREE), released, None, GateQuestion())
    assert (found.verdict, found.run.patch) == ("held", patch(TREE))
    (arm,) = found.arms
    assert arm.night is not None
    assert [one.key for one in arm.night.differing] == ["files", "patch", "plugin"]

    patched = source("night-5", TREE)
    for tonight in (source("tonight"), source("tonight", OTHER)):
        with pytest.raises(UsageError) as caught:
            judge_run(tonight, [*released[:4], patched], None, GateQuestion())
        assert f"\n  patch: {TREE[:19]} against " in caught.value.message
        assert caught.value.hint.endswith("--allow-different patch")
        allowed = judge_run(tonight, [*released[:4], patched], None, GateQuestion(allowed={"patch"}))
        assert allowed.verdict == "held"


def test_two_variants_of_a_patched_run_are_compared_as_those_of_any_other() -> None:
    both = made_source("r", {LOOP: STEADY, GUIDED: STEADY}, patch=patch())
    assert run_note(both.summary).patch == patch()
    assert [one.key for one in mismatches(both.side(LOOP), both.side(GUIDED))] == ["patch", "tools"]
