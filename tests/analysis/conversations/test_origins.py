from evalfarm.analysis.conversations.origins import origin_of, plugin_digest, skill_digests
from evalfarm.contracts.conversation import Origin
from evalfarm.contracts.run import Arm, Plan
from evalfarm.contracts.suite import Case, Plugin, Server, Simulation, Suite, Variant
from evalfarm.contracts.verdict import Label, Result

_FILES = {
    "catalog.json": "sha256:c",
    "plugin/.mcp.json": "sha256:m",
    "plugin/skills/orders/SKILL.md": "sha256:o",
    "plugin/skills/orders/notes/a.md": "sha256:n",
    "plugin/skills/refunds/SKILL.md": "sha256:r",
    "plugin/skills/README.md": "sha256:x",
    "policy.py": "sha256:p",
    "server.py": "sha256:s",
    "next/skills/orders/SKILL.md": "sha256:o2",
}


def _plan(**files: str) -> Plan:
    suite = Suite(
        suite="shop",
        version="3",
        plugin=Plugin(name="Shop", version="2.0.0", path="plugin"),
        server=Server(python="server.py"),
        variants={"plain": Variant(), "next": Variant(plugin_path="next"), "loud": Variant(env={"LOUD": "1"})},
        simulation=Simulation(policy="policy.py"),
        cases=(
            Case(id="stock", turns=("How many?",), tags={"skill": "orders"}),
            Case(id="price", turns=("How much?",)),
        ),
    )
    arm = Arm(model="m", harness="loop", variant="plain")
    return Plan(run="r", suite=suite, arms=(arm,), cases=("stock", "price"), repeats=1, files={**_FILES, **files})


def test_a_skill_is_known_by_all_files_of_its_folder() -> None:
    found = skill_digests(_plan(), "plain")
    changed = skill_digests(_plan(**{"plugin/skills/orders/notes/a.md": "sha256:new"}), "plain")
    assert list(found) == ["orders", "refunds"]
    assert found["orders"] != changed["orders"]
    assert found["refunds"] == changed["refunds"]
    assert list(skill_digests(_plan(), "next")) == ["orders"]


def test_a_plugin_is_known_by_what_it_could_read_and_no_more() -> None:
    digest = plugin_digest(_plan(), "plain")
    for name in ("catalog.json", "plugin/.mcp.json", "plugin/skills/orders/SKILL.md", "server.py"):
        assert plugin_digest(_plan(**{name: "sha256:new"}), "plain") != digest, name
    for name in ("policy.py", "next/skills/orders/SKILL.md"):
        assert plugin_digest(_plan(**{name: "sha256:new"}), "plain") == digest, name
    assert len({plugin_digest(_plan(), variant) for variant in ("plain", "next", "loud")}) == 3


def test_an_attempt_that_closed_its_trial_has_its_verdict() -> None:
    plan = _plan()
    label = Label(grader="tool_route", version="1", value="FAIL", reasons=("stock was never called",))
    trial = plan.trial(0)
    result = Result(trial=trial, attempt=2, outcome="finished", verdict="failed", labels=(label,))
    assert origin_of(plan, "stock", "plain", result, attempt=2) == Origin(
        suite="shop",
        suite_version="3",
        plugin="Shop",
        plugin_version="2.0.0",
        plugin_digest=plugin_digest(plan, "plain"),
        skill="orders",
        skill_digests=skill_digests(plan, "plain"),
        counted=True,
        verdict="failed",
        reasons=("stock was never called",),
    )
    earlier = origin_of(plan, "price", "plain", result, attempt=1)
    assert (earlier.counted, earlier.verdict, earlier.reasons, earlier.skill) == (False, None, (), None)
