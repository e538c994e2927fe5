"""A version stands for one content: what changes under it is refused, and the lock only grows."""

import shutil
from pathlib import Path

import pytest

from cases.loader import SHIPPED, load_suite
from cases.lock import lock_path, renewed
from evalfarm.errors import SuiteError, UsageError


@pytest.fixture
def support(tmp_path: Path) -> Path:
    """A copy of the support suite, to be spoilt."""
    return Path(shutil.copytree(SHIPPED / "support", tmp_path / "support"))


def change(folder: Path, file: str, old: str, new: str) -> None:
    path = folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def refusal(folder: Path) -> str:
    with pytest.raises(SuiteError) as caught:
        load_suite(str(folder))
    return str(caught.value).replace(f"{folder}/", "")


ADVANCE = "so that earlier evidence keeps its meaning, then evalfarm lock suite.yaml"


@pytest.mark.parametrize(
    ("file", "old", "new", "named"),
    [
        (
            "suite.yaml",
            "DEMO-102 arrived 12 days ago.",
            "DEMO-102 came 12 days ago.",
            "final-sale-12-days' changed (asked)",
        ),
        (
            "suite.yaml",
            "because: Final sale excludes it, whatever",
            "because: It excludes, whatever",
            "changed (reference)",
        ),
        ("suite.yaml", "number: 12,", "number: 13,", "final-sale-12-days' changed (expected)"),
        (
            "fixtures.json",
            '"delivered_age_days": 12',
            '"delivered_age_days": 11',
            "final-sale-12-days' changed (fixtures)",
        ),
    ],
)
def test_a_case_that_changes_under_its_version_is_refused_by_name(
    support: Path, file: str, old: str, new: str, named: str
) -> None:
    change(support, file, old, new)
    told = refusal(support)
    assert named in told
    assert "and its version is still '2'" in told
    assert f"advance its fixture_version, {ADVANCE}" in told


def test_a_policy_that_changes_names_every_case_under_it(support: Path) -> None:
    change(support, "fixtures.json", '"max_age_days": 30', '"max_age_days": 31')
    assert refusal(support).startswith("suite.yaml has 28 mistakes:\n")


def test_a_rubric_and_the_suites_words_have_versions_too(support: Path) -> None:
    change(support, "suite.yaml", "The answer is about the order", "The answer is on the order")
    assert "rubric 'return-desk' changed (text), and its version is still '1'" in refusal(support)
    change(support, "suite.yaml", "The answer is on the order", "The answer is about the order")
    change(support, "suite.yaml", "server_instructions: true", "server_instructions: false")
    assert "suite 'support' changed (loop), and its version is still '2'" in refusal(support)


def test_regrouping_a_case_changes_nothing_that_its_version_stands_for(support: Path) -> None:
    change(
        support, "suite.yaml", "    category: eligible\n", "    category: boundary\n    family: f\n    tags: {a: b}\n"
    )
    assert load_suite(str(support)).suite.cases[0].category == "boundary"


def test_an_advanced_version_is_asked_for_and_then_added_beside_the_earlier_one(support: Path) -> None:
    change(support, "suite.yaml", 'eligible\n    fixture_version: "2"', 'eligible\n    fixture_version: "3 b"')
    change(support, "suite.yaml", "Does my order DEMO-101 meet", "Does order DEMO-101 meet")
    assert "case 'eligible-ordinary' is not in suite.lock with version '3 b'" in refusal(support)
    loaded, path = load_suite(str(support), locked=False), lock_path(support / "suite.yaml")
    before = path.read_text()
    path.write_text(renewed(loaded.suite, before, path))
    assert path.read_text().startswith(before)
    assert [line.split(" ")[2] for line in path.read_text().splitlines() if " eligible-ordinary " in line] == [
        "1",
        "2",
        "3%20b",
    ]
    assert load_suite(str(support)) == load_suite(str(support), locked=False)


def test_a_lock_is_never_rewritten_to_fit(support: Path) -> None:
    change(support, "fixtures.json", '"delivered_age_days": 12', '"delivered_age_days": 11')
    loaded, path = load_suite(str(support), locked=False), lock_path(support / "suite.yaml")
    with pytest.raises(UsageError) as caught:
        renewed(loaded.suite, path.read_text(), path)
    assert str(caught.value) == (
        "case 'final-sale-12-days' changed (fixtures), and its version is still '2'\n\n"
        "hint: advance its fixture_version, so that earlier evidence keeps its meaning"
    )


def test_a_damaged_lock_is_named_with_its_line(support: Path) -> None:
    change(support, "suite.lock", "rubric return-desk 1 ", "rubric ")
    assert "suite.lock:3: this is no line of a lock" in refusal(support)


def test_without_a_lock_nothing_is_held(support: Path) -> None:
    (support / "suite.lock").unlink()
    change(support, "fixtures.json", '"delivered_age_days": 12', '"delivered_age_days": 11')
    assert load_suite(str(support)).suite.fixtures["DEMO-102"].result["delivered_age_days"] == 11


def test_the_lock_and_the_regression_set_are_never_handed_to_a_server(support: Path) -> None:
    (support / "suite.regressions.jsonl").write_text("")
    change(support, "suite.yaml", "cases:\n  - id", 'files: ["*"]\n\ncases:\n  - id')
    handed = load_suite(str(support)).files
    assert {name for name in handed if name.endswith((".lock", ".jsonl", ".yaml"))} == set()
