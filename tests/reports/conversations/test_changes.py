import pytest

from evalfarm.reports.conversations.changes import change, written


@pytest.mark.parametrize(
    ("figure", "value", "told"),
    [
        ("success", 0.6, "60.0 %"),
        ("cost_usd", 0.0042, "$0.0042"),
        ("duration_s", 12.34, "12.3"),
        ("turns", 1.5, "1.50"),
        ("input_tokens", 9972.4, "9,972"),
        ("turns", None, "n/a"),
        ("cost_usd", None, "unknown"),
    ],
)
def test_a_figure_is_written_in_its_unit(figure: str, value: float | None, told: str) -> None:
    assert written(figure, value) == told


@pytest.mark.parametrize(
    ("figure", "value", "before", "told"),
    [
        ("success", 0.6, 0.5, "+10.0 points"),
        ("cost_usd", 0.02, 0.01, "+100.0 %"),
        ("turns", 1.0, 2.0, "-50.0 %"),
        ("turns", 2.0, 2.0, "none"),
        ("writes", 0.5, 0.0, "+0.50"),
        ("turns", None, 2.0, "–"),
        ("turns", 2.0, None, "–"),
    ],
)
def test_a_change_is_in_points_of_a_share_and_in_percent_of_the_rest(
    figure: str, value: float | None, before: float | None, told: str
) -> None:
    assert change(figure, value, before) == told
