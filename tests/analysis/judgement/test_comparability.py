import pytest

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.arms import axes_between
from evalfarm.analysis.judgement.comparability import (
    Mismatch,
    Side,
    case_digests,
    meant_to_differ,
    mismatches,
    refuse,
    refused,
)
from evalfarm.contracts.run import Arm, Plan
from evalfarm.contracts.suite import Case, Plugin, Server, Suite
from evalfarm.errors import UsageError
from tests.made_runs import CODEX, DIGESTS, DIRECT, GUIDED, LOOP, OTHER, VERSIONS, made_manifest

ELSE = "sha256:" + "e" * 64


def side(arm: ArmName = LOOP, *, cases: dict[str, str] | None = None, **changes: object) -> Side:
    return Side(made_manifest("r", [arm], **changes), arm, cases or {})


def keys(baseline: Side, candidate: Side) -> list[str]:
    return [found.key for found in mismatches(baseline, candidate)]


def stands_in_the_way(baseline: Side, candidate: Side) -> list[str]:
    meant = meant_to_differ(axes_between(baseline.arm, candidate.arm))
    return [found.key for found in refused(mismatches(baseline, candidate), meant, ())]


def test_what_names_a_run_is_not_held_against_it() -> None:
    other = side(
        created_at=9.0,
        label="b",
        seed=4,
        repeats=7,
        planned=70,
        cases={},
        filters={"kind": "x"},
        digests=DIGESTS
        | {"plan": ELSE, "prices": ELSE, "cases": ELSE, "prompts": ELSE, "tools/guided": ELSE}
        | dict.fromkeys(("plugin/plain", "skill/plain/orders", "marketplace/plain"), ELSE),
    )
    assert mismatches(side(), other) == ()


@pytest.mark.parametrize("key", ["files", "plugin", "variants", "loop", "tools/plain", "grader"])
def test_a_digest_that_differs_stands_in_the_way_of_two_runs(key: str) -> None:
    other = side(digests=DIGESTS | {key: ELSE})
    found = mismatches(side(), other)
    assert found == (Mismatch(key, DIGESTS[key][:19], ELSE[:19]),)
    assert refused(found, (), ()) == found


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("isolation", "harness", ("cell", "harness")),
        ("evalfarm", "0.2.0", ("0.1.0", "0.2.0")),
        ("suite_version", "2", ("1", "2")),
        ("suite", "large", ("small", "large")),
        ("synthetic", True, ("no", "yes")),
    ],
)
def test_a_setting_that_differs_is_named_with_both_values(field: str, value: object, told: tuple[str, str]) -> None:
    assert mismatches(side(), side(**{field: value})) == (Mismatch(field, *told),)


def test_a_library_s_version_and_a_digest_that_one_run_lacks_are_named() -> None:
    other = side(versions=VERSIONS | {"openai": "4.0.0"}, digests=DIGESTS | {"judge": ELSE})
    assert mismatches(side(), other) == (
        Mismatch("judge", "(none)", ELSE[:19]),
        Mismatch("versions/openai", "3.57.0", "4.0.0"),
    )


def test_the_version_of_codex_counts_where_both_ran_in_codex() -> None:
    newer = {"versions": VERSIONS | {"codex": "0.164.0"}, "model_transport": "http"}
    assert keys(side(CODEX), side(CODEX, **newer)) == ["model_transport", "versions/codex"]
    assert keys(side(LOOP), side(LOOP, **newer)) == []
    assert keys(side(LOOP), side(CODEX, **newer)) == []


def test_a_simulated_model_is_not_compared_with_a_real_one() -> None:
    simulated = ArmName("sim-flaky", "loop", "plain")
    assert mismatches(side(), side(simulated)) == (Mismatch("simulated", "no", "yes"),)
    assert stands_in_the_way(side(), side(simulated)) == ["simulated"]
    assert keys(side(DIRECT), side(simulated)) == []


def test_two_variants_may_differ_in_what_the_plugin_is_made_of_and_in_nothing_else() -> None:
    changed = DIGESTS | {key: ELSE for key in ("files", "plugin", "variants", "grader")}
    other = side(GUIDED, digests=changed)
    assert keys(side(), other) == ["files", "grader", "plugin", "tools", "variants"]
    assert stands_in_the_way(side(), other) == ["grader"]


def test_two_models_may_differ_in_nothing_else() -> None:
    assert stands_in_the_way(side(), side(OTHER)) == []
    assert stands_in_the_way(side(), side(OTHER, digests=DIGESTS | {"files": ELSE})) == ["files"]


def test_a_case_that_changed_is_named_and_one_that_only_one_run_has_is_not() -> None:
    asked = {"a": "1", "b": "2", "c": "3", "d": "4", "only-here": "5"}
    other = {"a": "1", "b": "x", "c": "x", "d": "x", "only-there": "5"}
    assert keys(side(cases=asked), side(cases=asked | {"new": "6"})) == []
    assert keys(side(cases=asked), side(cases=other)) == ["cases/b, c, d"]
    assert keys(side(cases=asked), side(cases=other | {"a": "y"})) == ["cases/a, b, c and 1 more"]


def test_of_results_from_elsewhere_nothing_is_known() -> None:
    foreign = Side(None, LOOP, {})
    assert mismatches(foreign, foreign) == ()
    assert mismatches(foreign, side()) == (Mismatch("manifest", "not produced by evalfarm", "r"),)


def test_an_allowed_key_covers_what_lies_below_it() -> None:
    found = [Mismatch(key, "1", "2") for key in ("tools/plain", "versions/python", "versions/openai", "grader")]
    assert [one.key for one in refused(found, (), ("tools", "versions/python"))] == ["versions/openai", "grader"]


def test_a_refusal_lists_every_key_with_both_values_and_says_how_to_allow_them() -> None:
    with pytest.raises(UsageError) as caught:
        refuse(
            "a and b",
            [Mismatch("grader", "1", "2"), Mismatch("versions/codex", "3", "4"), Mismatch("cases/a, b", "5", "6")],
        )
    assert str(caught.value) == (
        "a and b cannot be compared: they differ in what was not meant to differ\n"
        "  grader: 1 against 2\n"
        "  versions/codex: 3 against 4\n"
        "  cases/a, b: 5 against 6\n\n"
        "hint: compare runs that share these, or say that you mean it: "
        "--allow-different grader --allow-different versions/codex --allow-different cases"
    )


def test_a_refusal_says_what_files_are() -> None:
    with pytest.raises(UsageError) as caught:
        refuse("a and b", [Mismatch("files", "1", "2")])
    assert caught.value.hint == (
        "compare runs that share these, or say that you mean it: --allow-different files "
        "(files: the server, its data, whatever else the suite names)"
    )


def test_nothing_is_refused_where_nothing_differs() -> None:
    refuse("a and b", ())


def test_a_case_s_digest_is_of_what_it_asks_and_expects_and_not_of_its_tags() -> None:
    def plan(*cases: Case) -> Plan:
        suite = Suite(suite="s", version="1", plugin=Plugin(name="p"), server=Server(python="s.py"), cases=cases)
        arm = Arm(model="m", harness="loop", variant="plain")
        return Plan(run="r", suite=suite, arms=(arm,), cases=tuple(case.id for case in cases[:2]), repeats=1)

    first = case_digests(plan(*(Case(id=name, turns=("?",)) for name in "abc")))
    tagged = case_digests(plan(Case(id="a", turns=("?",), tags={"kind": "x"}), Case(id="b", turns=("!",))))
    assert list(first) == ["a", "b"]
    assert (first["a"] == tagged["a"], first["b"] == tagged["b"]) == (True, False)
