from evalfarm.contracts.run import NO_MODEL, Arm, Plan
from evalfarm.contracts.suite import Case, Plugin, Server, Suite
from evalfarm.runstate import Limits, ModelLimits, Terms, terms_of

SUITE = Suite(
    suite="shop",
    version="1",
    plugin=Plugin(name="Shop"),
    server=Server(python="s.py"),
    cases=(Case(id="a", turns=("?",)),),
)
ARMS = (
    Arm(model=NO_MODEL, harness="direct", variant="plain"),
    Arm(model="slow", harness="loop", variant="plain"),
    Arm(model="fast", harness="loop", variant="plain"),
)


def test_a_trial_starts_on_the_terms_of_its_arm_and_its_model() -> None:
    plan = Plan(run="r", suite=SUITE, arms=ARMS, cases=("a",), repeats=1)
    limits = Limits(models={"slow": ModelLimits(concurrency=3), NO_MODEL: ModelLimits(concurrency=1)})
    trials = {plan.trial(at).arm.model: plan.trial(at) for at in range(plan.size)}
    assert {model: terms_of(plan, trial, limits) for model, trial in trials.items()} == {
        NO_MODEL: Terms(0),
        "slow": Terms(1, "slow", 3),
        "fast": Terms(2, "fast", None),
    }
