import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.exporter.families import Metric, Sample, rendered

TRIALS = Metric("evalfarm_trials_total", "counter", "Trials closed.", ("suite", "outcome"))
SLOTS = Metric("evalfarm_slots", "gauge", "Trials at a time.")


def test_samples_are_told_metric_by_metric_under_their_help_and_kind() -> None:
    told = [
        Sample(TRIALS, 3, ("bls", "passed")),
        Sample(SLOTS, 2.0),
        Sample(TRIALS, 1, ("bls", "failed")),
    ]
    assert rendered(told) == (
        "# HELP evalfarm_trials_total Trials closed.\n"
        "# TYPE evalfarm_trials_total counter\n"
        'evalfarm_trials_total{suite="bls",outcome="passed"} 3\n'
        'evalfarm_trials_total{suite="bls",outcome="failed"} 1\n'
        "# HELP evalfarm_slots Trials at a time.\n"
        "# TYPE evalfarm_slots gauge\n"
        "evalfarm_slots 2.0\n"
    )


def test_one_series_cannot_be_told_twice() -> None:
    with pytest.raises(ValueError, match="is told twice"):
        rendered([Sample(SLOTS, 1), Sample(SLOTS, 2)])


def test_a_sample_has_all_of_its_metric_s_labels() -> None:
    with pytest.raises(ValueError, match="has the labels"):
        Sample(TRIALS, 1, ("bls",))


@given(st.text())
def test_whatever_a_label_holds_can_be_read_back(value: str) -> None:
    line = rendered([Sample(TRIALS, 1, (value, "passed"))]).split("\n")
    assert len(line) == 4
    found = re.fullmatch(r'evalfarm_trials_total\{suite="((?:[^"\\\n]|\\["\\n])*)",outcome="passed"\} 1', line[2])
    assert found is not None
    unescaped = re.sub(r"\\(.)", lambda pair: "\n" if pair[1] == "n" else pair[1], found[1])
    assert unescaped == value
