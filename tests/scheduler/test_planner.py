from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm import __version__
from evalfarm.contracts.base import digest
from evalfarm.contracts.run import Arm, Manifest, Plan
from evalfarm.contracts.suite import Case, DirectCall, Expectation, LoopOptions, Plugin, Server, Suite, Variant
from evalfarm.errors import UnknownName, UsageError
from scheduler.planner import Axes, Measured, manifest_of, plan_run

CASES = ("refund", "order", "stock")


def planned(suite: Suite, axes: Axes, cases: tuple[str, ...] = CASES) -> Plan:
    return plan_run(suite, axes, run="shop-1", cases=cases, files={"server.py": "sha256:00"})


def arms(plan: Plan) -> list[tuple[str, str, str]]:
    return [(arm.model, arm.harness, arm.variant) for arm in plan.arms]


def with_cases(suite: Suite, *cases: Case) -> Suite:
    return suite.model_copy(update={"cases": cases})


ASKED = Case(id="asked", turns=("Is it there?",))
CALLED = Case(id="called", direct=DirectCall(tool="stock"))


def test_by_default_every_level_and_variant_runs_and_direct_runs_once_without_a_model(suite: Suite) -> None:
    plan = planned(suite, Axes(models=("sim-careful", "gpt-5-mini"), repeats=3, seed=7, isolation="harness"))
    assert arms(plan) == [
        ("none", "direct", "plain"),
        ("none", "direct", "guided"),
        ("sim-careful", "loop", "plain"),
        ("sim-careful", "loop", "guided"),
        ("gpt-5-mini", "loop", "plain"),
        ("gpt-5-mini", "loop", "guided"),
        ("sim-careful", "codex", "plain"),
        ("sim-careful", "codex", "guided"),
        ("gpt-5-mini", "codex", "plain"),
        ("gpt-5-mini", "codex", "guided"),
    ]
    assert (plan.run, plan.cases, plan.repeats, plan.seed, plan.isolation, plan.files, plan.size) == (
        "shop-1",
        CASES,
        3,
        7,
        "harness",
        {"server.py": "sha256:00"},
        90,
    )


def test_what_is_named_twice_runs_once(suite: Suite) -> None:
    axes = Axes(models=("sim-careful",) * 2, harnesses=("codex", "loop", "codex"), variants=("guided", "guided"))
    assert arms(planned(suite, axes)) == [("sim-careful", "loop", "guided"), ("sim-careful", "codex", "guided")]


def test_cases_keep_the_suite_s_order_whatever_the_order_they_were_chosen_in(suite: Suite) -> None:
    assert planned(suite, Axes(models=("m",)), ("stock", "refund")).cases == ("refund", "stock")


def test_direct_alone_needs_no_model(suite: Suite) -> None:
    assert arms(planned(suite, Axes(models=(), harnesses=("direct",), variants=("plain",)))) == [
        ("none", "direct", "plain")
    ]


def test_a_level_that_a_case_has_no_form_for_is_left_out_by_default(suite: Suite) -> None:
    axes = Axes(models=("m",), variants=("plain",))
    assert arms(planned(with_cases(suite, ASKED), axes, ("asked",))) == [
        ("m", "loop", "plain"),
        ("m", "codex", "plain"),
    ]
    assert arms(planned(with_cases(suite, CALLED), axes, ("called",))) == [("none", "direct", "plain")]


@pytest.mark.parametrize(
    ("kind", "axes", "cases", "message", "hint"),
    [
        (
            UnknownName,
            Axes(models=("m",), harnesses=("lop",)),
            CASES,
            "there is no harness 'lop'",
            "the harnesses: direct, loop, codex",
        ),
        (
            UnknownName,
            Axes(models=("m",), variants=("plain", "gilded")),
            CASES,
            "suite 'shop' has no variant 'gilded'",
            "its variants: plain, guided",
        ),
        (
            UsageError,
            Axes(models=("m",), repeats=10**9),
            CASES,
            "1000000000 repeats of 3 cases in 6 arms are 18,000,000,000 trials; 10,000,000 is the most",
            "ask for fewer repeats: `evalfarm power` says when more of them stop helping",
        ),
        (
            UsageError,
            Axes(models=("m",), repeats=0),
            CASES,
            "0 repeats plan nothing",
            "--repeats takes a whole number from 1",
        ),
        (
            UsageError,
            Axes(models=()),
            CASES,
            "no model was named",
            "add --model, as in --model sim-careful or --model gpt-5-mini",
        ),
        (
            UsageError,
            Axes(models=("none",)),
            CASES,
            "'none' is no model's name",
            "direct runs without a model: leave --model out for it",
        ),
        (
            UsageError,
            Axes(models=("m",), harnesses=("direct",)),
            ("asked",),
            "case 'asked' of suite 'shop' has no direct call, so it cannot run at 'direct'",
            "give the case one, filter it out with --filter, or leave this harness out",
        ),
        (
            UsageError,
            Axes(models=("m",), harnesses=("loop",)),
            ("called",),
            "case 'called' of suite 'shop' has no query, so it cannot run at 'loop'",
            "give the case one, filter it out with --filter, or leave this harness out",
        ),
        (
            UsageError,
            Axes(models=("m",)),
            ("asked", "called"),
            "no harness can run every chosen case of suite 'shop': some have only a query, some only a direct call",
            "choose cases of one kind with --filter",
        ),
    ],
)
def test_axes_that_cannot_be_planned_are_refused(
    suite: Suite, kind: type[UsageError], axes: Axes, cases: tuple[str, ...], message: str, hint: str
) -> None:
    with pytest.raises(kind) as caught:
        planned(with_cases(suite, *suite.cases, ASKED, CALLED), axes, cases)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    ids = tuple(f"case-{number}" for number in range(draw(st.integers(1, 6))))
    suite = Suite(
        suite="shop",
        version="1",
        plugin=Plugin(name="Shop"),
        server=Server(python="server.py"),
        variants={name: Variant() for name in ("plain", "guided")[: draw(st.integers(1, 2))]},
        cases=tuple(Case(id=name, turns=("?",), direct=DirectCall(tool="t")) for name in ids),
    )
    models = ("sim-careful", "sim-flaky", "gpt-5-mini")[: draw(st.integers(1, 3))]
    axes = Axes(models=models, repeats=draw(st.integers(1, 4)), seed=draw(st.integers(0, 2**40)))
    return planned(suite, axes, ids)


@given(plans())
def test_a_plan_s_indices_are_its_trials_each_once(plan: Plan) -> None:
    trials = [plan.trial(index) for index in range(plan.size)]
    assert [trial.index for trial in trials] == list(range(plan.size))
    met = Counter((trial.case, trial.repeat, trial.arm) for trial in trials)
    expected = {(case, repeat, arm) for case in plan.cases for repeat in range(plan.repeats) for arm in plan.arms}
    assert met == Counter(expected)
    for outside in (-1, plan.size):
        with pytest.raises(IndexError):
            plan.trial(outside)


@given(plans())
def test_a_repeat_begins_only_when_the_one_before_has_been_handed_out(plan: Plan) -> None:
    repeats = [plan.trial(index).repeat for index in range(plan.size)]
    assert repeats == sorted(repeats)


@given(plans(), plans())
def test_a_trial_s_seed_follows_from_case_model_and_repeat_alone(plan: Plan, other: Plan) -> None:
    seeds: dict[tuple[str, str, int, int], set[int]] = {}
    for each in (plan, other):
        for trial in map(each.trial, range(each.size)):
            seeds.setdefault((trial.case, trial.arm.model, trial.repeat, each.seed), set()).add(trial.seed)
    assert all(len(same) == 1 for same in seeds.values())
    assert len(set.union(*seeds.values())) == len(seeds)
    assert all(0 <= seed < 2**63 for same in seeds.values() for seed in same)


@given(plans())
def test_a_plan_read_back_has_the_same_trials(plan: Plan) -> None:
    again = Plan.model_validate_json(plan.model_dump_json())
    assert [again.trial(index) for index in range(again.size)] == [plan.trial(index) for index in range(plan.size)]


MEASURED = Measured(versions={"python": "3.11.7"}, digests={"grader": "sha256:aa"}, simulated=True)


def manifest(plan: Plan, **changes: Any) -> Manifest:
    given: dict[str, Any] = {"created_at": 12.5, "label": "night", "filters": {"case": "refund"}} | changes
    return manifest_of(plan, given.pop("measured", MEASURED), **given)


def test_a_manifest_says_what_exactly_is_run(plan: Plan) -> None:
    written = manifest(plan)
    digests = written.digests
    stated = {"plan", "cases", "prompts", "files", "plugin", "variants", "loop", "grader"}
    assert set(digests) == stated | {"plugin/plain"}
    assert written == Manifest(
        run="shop-1",
        label="night",
        created_at=12.5,
        evalfarm=__version__,
        suite="shop",
        suite_version="1",
        plugin="Shop",
        plugin_version=plan.suite.plugin.version,
        simulated=True,
        synthetic=False,
        isolation="cell",
        arms=plan.arms,
        cases=3,
        repeats=2,
        seed=5,
        planned=12,
        filters={"case": "refund"},
        digests=digests,
        versions={"python": "3.11.7"},
    )
    assert digests["plan"] == digest(plan)
    assert digests["grader"] == "sha256:aa"


def changed_suite(plan: Plan, **changes: Any) -> Plan:
    return plan.model_copy(update={"suite": plan.suite.model_copy(update=changes)})


def with_first_case(plan: Plan, **changes: Any) -> Plan:
    first, *others = plan.suite.cases
    return changed_suite(plan, cases=(first.model_copy(update=changes), *others))


CHANGES: dict[str, tuple[Callable[[Plan], Plan], set[str]]] = {
    "another seed": (lambda plan: plan.model_copy(update={"seed": 6}), set()),
    "more repeats": (lambda plan: plan.model_copy(update={"repeats": 3}), set()),
    "another isolation": (lambda plan: plan.model_copy(update={"isolation": "harness"}), set()),
    "another arm": (
        lambda plan: plan.model_copy(update={"arms": (Arm(model="m", harness="loop", variant="plain"),)}),
        set(),
    ),
    "a suite's file": (
        lambda plan: plan.model_copy(update={"files": {"server.py": "sha256:11"}}),
        {"files", "plugin/plain"},
    ),
    "a question": (lambda plan: with_first_case(plan, turns=("Give it back.",)), {"cases", "prompts"}),
    "an expectation": (lambda plan: with_first_case(plan, expect=Expectation(tools=("refund",))), {"cases"}),
    "a tag": (lambda plan: with_first_case(plan, tags={"kind": "money"}), {"cases"}),
    "the plugin": (lambda plan: changed_suite(plan, plugin=Plugin(name="Shop", version="2")), {"plugin"}),
    "the server": (lambda plan: changed_suite(plan, server=Server(python="other.py")), {"variants", "plugin/plain"}),
    "a variant's environment": (
        lambda plan: changed_suite(plan, variants={"plain": Variant(env={"HINTS": "2"}), "guided": Variant()}),
        {"variants", "plugin/plain"},
    ),
    "the loop's prompt": (lambda plan: changed_suite(plan, loop=LoopOptions(system_prompt="Be brief.")), {"loop"}),
    "the suite's version": (lambda plan: changed_suite(plan, version="2"), set()),
    "the run's name": (lambda plan: plan.model_copy(update={"run": "shop-2"}), set()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_digest_changes_exactly_when_what_it_digests_does(plan: Plan, change: str) -> None:
    make, moved = CHANGES[change]
    before, after = manifest(plan).digests, manifest(make(plan)).digests
    assert {name for name in before if before[name] != after[name]} == {"plan"} | moved


def test_each_variant_that_is_run_has_its_plugin_and_each_skills_folder_by_digest(plan: Plan) -> None:
    arms = tuple(Arm(model="m", harness="loop", variant=variant) for variant in ("plain", "guided"))
    files = {"plugin/skills/orders/SKILL.md": "sha256:o", "plugin/skills/refunds/SKILL.md": "sha256:r"}
    shipped = changed_suite(plan, plugin=Plugin(name="Shop", path="plugin"))
    both = shipped.model_copy(update={"arms": arms, "files": files})
    reworded = both.model_copy(update={"files": {**files, "plugin/skills/orders/SKILL.md": "sha256:new"}})
    before, after = manifest(both).digests, manifest(reworded).digests
    of_versions = {name for name in before if name.startswith(("plugin/", "skill/"))}
    orders = {f"skill/{variant}/orders" for variant in ("plain", "guided")}
    plugins = {f"plugin/{variant}" for variant in ("plain", "guided")}
    assert of_versions == orders | plugins | {f"skill/{variant}/refunds" for variant in ("plain", "guided")}
    assert {name for name in before if before[name] != after[name]} == {"plan", "files"} | orders | plugins


def test_a_case_that_was_not_chosen_moves_no_digest_of_the_cases(plan: Plan) -> None:
    chosen = plan.model_copy(update={"cases": ("order", "stock")})
    before, after = manifest(chosen).digests, manifest(with_first_case(chosen, turns=("Other words.",))).digests
    assert {name for name in before if before[name] != after[name]} == {"plan"}


def test_a_change_of_what_was_measured_moves_its_own_digest_only(plan: Plan) -> None:
    other = Measured(versions=MEASURED.versions, digests={"grader": "sha256:bb"}, simulated=True)
    before, after = manifest(plan).digests, manifest(plan, measured=other).digests
    assert {name for name in before if before[name] != after[name]} == {"grader"}
