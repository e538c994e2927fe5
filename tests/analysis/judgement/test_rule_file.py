from dataclasses import fields, replace
from pathlib import Path

import pytest

from evalfarm.analysis.judgement.rule_file import rule_of_file, with_numbers
from evalfarm.analysis.statistics.regression import NIGHTLY
from evalfarm.errors import UnknownName, UsageError


def test_a_file_sets_the_numbers_it_names_and_leaves_the_others() -> None:
    text = "[gate]\nscreen = 0.2\nleast_nights = 3\n[other]\nx = 1\n"
    assert rule_of_file(text, "rule.toml") == replace(NIGHTLY, screen=0.2, least_nights=3)


def test_the_guide_shows_the_rule_as_it_is() -> None:
    guide = (Path(__file__).parents[3] / "docs/guides/comparing.md").read_text(encoding="utf-8")
    example = guide.partition("```toml\n")[2].partition("```")[0]
    assert rule_of_file(example, "comparing.md") == NIGHTLY
    assert all(f"{field.name} = " in example for field in fields(NIGHTLY))


def test_numbers_can_be_set_one_by_one() -> None:
    assert with_numbers(NIGHTLY, ["least_drop=0.05", " confirm_repeats = 9 "]) == replace(
        NIGHTLY, least_drop=0.05, confirm_repeats=9
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("screen = 0.2\n", "rule.toml has no [gate] table"),
        ("[gate\n", "rule.toml is no TOML"),
        ("[gate]\nscreen = true\n", "rule.toml:2, [gate]: screen is no number: True"),
        ("[gate]\nscreen = 1.5\n", "rule.toml:2, [gate]: screen is 1.5"),
        ("[gate]\nconfirm_repeats = 0\n", "rule.toml:2, [gate]: confirm_repeats is 0"),
        ("[gate]\nmost_nights = 4\n", "rule.toml:2, [gate]: least_nights (5) is more than most_nights (4)"),
    ],
)
def test_a_file_that_makes_no_rule_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        rule_of_file(text, "rule.toml")
    assert caught.value.message.startswith(told)


@pytest.mark.parametrize(
    ("number", "told"),
    [
        ("screen", "--set: screen is no number: ''"),
        ("screen=high", "--set: screen is no number: 'high'"),
        ("screen=nan", "--set: screen is nan"),
        ("least_nights=2.5", "--set: least_nights is 2.5"),
        ("least_nights=inf", "--set: least_nights is inf"),
    ],
)
def test_a_setting_that_is_no_number_in_its_range_is_refused(number: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_numbers(NIGHTLY, [number])
    assert caught.value.message == told


def test_a_number_that_the_rule_does_not_have_is_named_with_those_it_has() -> None:
    with pytest.raises(UnknownName) as caught:
        with_numbers(NIGHTLY, ["sreen=0.1"])
    assert caught.value.message == "--set: the rule has no number 'sreen'"
    assert caught.value.hint.startswith("its numbers: screen, confirm, least_drop, ")
