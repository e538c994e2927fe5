"""Writes the suite bls-108: 108 questions over 56 surveys, and the catalog that answers them.

    python cases/suites/bls/generate.py

It reads `surveys.txt`, and every run writes the same bytes. The surveys' codes follow the Bureau's; indicators,
series, IDs and values are made up. Of every 18 questions 8 have one candidate, 4 a default among ranked
candidates, 3 a tie and 3 nothing at all, so of the 108 it is 48, 24, 18 and 18.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent

Mechanism = Literal["headline", "ambiguous_default", "ambiguous_concept", "coverage_gap"]

EXPECTED_TYPE: dict[Mechanism, str] = {
    "headline": "exact",
    "ambiguous_default": "exact",
    "ambiguous_concept": "clarify",
    "coverage_gap": "gap",
}
LETTERS: dict[str, Mechanism] = {
    "H": "headline",
    "D": "ambiguous_default",
    "T": "ambiguous_concept",
    "G": "coverage_gap",
}
PATTERN = "HDHTHDGHHTDHGHDTHG"

#: The indicator stands in each word for word, and each reads well for one thing and for many.
TEMPLATES = (
    "What is the latest figure for {indicator}?",
    "How has the level of {indicator} changed over the past year?",
    "What is the value for {indicator} right now?",
    "Can you look up the most recent value of {indicator}?",
    "What was the figure for {indicator} in the most recent month?",
    "Tell me the current level of {indicator}.",
    "How high is the current figure for {indicator}?",
    "Please report the latest reading for {indicator}.",
)
#: What the two readings of an ambiguous concept may be.
READINGS = (
    ("by place of residence", "by place of work"),
    ("all workers", "full-time workers"),
    ("annual definition", "monthly definition"),
)
PERIODS = ("2025-01", "2025-02", "2025-03", "2025-04", "2025-05", "2025-06")


@dataclass(frozen=True)
class Candidate:
    """One series that an indicator may stand for."""

    series_id: str
    title: str
    confidence: float


@dataclass(frozen=True)
class Question:
    """One case to be: what is asked about, in which survey, with which trap."""

    survey: str
    indicator: str
    mechanism: Mechanism
    text: str
    candidates: tuple[Candidate, ...]

    @property
    def case(self) -> str:
        """The case's id."""
        return f"{self.survey}-{re.sub('[^a-z0-9]+', '-', self.indicator.casefold())}".lower()

    @property
    def best(self) -> list[str]:
        """The candidates of the highest confidence."""
        top = max((candidate.confidence for candidate in self.candidates), default=0.0)
        return [candidate.series_id for candidate in self.candidates if candidate.confidence == top]

    @property
    def fetched(self) -> list[str]:
        """What a right answer fetches."""
        return self.best if EXPECTED_TYPE[self.mechanism] == "exact" else []


def questions() -> tuple[Question, ...]:
    """All questions, in the order of the surveys."""
    asked: list[Question] = []
    for survey, indicator in _indicators():
        place = len(asked)
        mechanism = LETTERS[PATTERN[place % len(PATTERN)]]
        text = TEMPLATES[place % len(TEMPLATES)].format(indicator=indicator)
        candidates = tuple(_candidates(survey, indicator, mechanism, place))
        asked.append(Question(survey, indicator, mechanism, text, candidates))
    return tuple(asked)


def _indicators() -> Iterator[tuple[str, str]]:
    rows = HERE.joinpath("surveys.txt").read_text(encoding="utf-8").splitlines()
    for row in rows:
        if not row.startswith("#"):
            survey, _, *indicators = (part.strip() for part in row.split("|"))
            yield from ((survey, indicator) for indicator in indicators)


def _candidates(survey: str, indicator: str, mechanism: Mechanism, place: int) -> Iterator[Candidate]:
    name = indicator[0].upper() + indicator[1:]
    if mechanism == "headline":
        yield _candidate(f"{survey}S", name, 1.0)
    elif mechanism == "ambiguous_default":
        yield _candidate(f"{survey}S", f"{name}, seasonally adjusted", 1.0)
        yield _candidate(f"{survey}U", f"{name}, not seasonally adjusted", 0.6)
    elif mechanism == "ambiguous_concept":
        for reading in READINGS[place % len(READINGS)]:
            yield _candidate(f"{survey}S", f"{name}, {reading}", 0.5)
        if place % 2:  # a third that does not belong to the tie
            yield _candidate(f"{survey}U", f"{name}, discontinued", 0.3)


def _candidate(prefix: str, title: str, confidence: float) -> Candidate:
    # Drawn from the title, so that no ID can be guessed from its neighbours.
    return Candidate(f"{prefix}{_drawn(title) % 10**8:08d}", f"{title} (synthetic)", confidence)


def _drawn(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def catalog_text() -> str:
    """`catalog-108.json`, one entry or series a line. Longer keywords come first, so the most specific one wins."""
    asked = [question for question in questions() if question.candidates]
    asked.sort(key=lambda question: (-len(question.indicator), question.indicator))
    entries = [
        {
            "keywords": [question.indicator.casefold()],
            "candidates": [{"series_id": c.series_id, "confidence": c.confidence} for c in question.candidates],
        }
        for question in asked
    ]
    series = {c.series_id: _series(c) for question in asked for c in question.candidates}
    entry_lines = ",\n".join(f"    {json.dumps(entry)}" for entry in entries)
    series_lines = ",\n".join(f"    {json.dumps(key)}: {json.dumps(series[key])}" for key in sorted(series))
    return f'{{\n  "entries": [\n{entry_lines}\n  ],\n  "series": {{\n{series_lines}\n  }}\n}}\n'


def _series(candidate: Candidate) -> dict[str, object]:
    level = 20 + _drawn(candidate.series_id) % 4000 / 10
    steps = (_drawn(f"{candidate.series_id} {period}") % 41 - 20 for period in PERIODS)
    values = [round(level + step / 10, 1) for step in steps]
    observations = [{"period": period, "value": value} for period, value in zip(PERIODS, values, strict=True)]
    return {"title": candidate.title, "observations": observations}


HEAD = """\
# Written by generate.py; change that, not this.
suite: bls-108
version: "1"
description: 108 questions over 56 surveys of a synthetic catalog with defaults, ties and gaps
synthetic: true

plugin:
  name: BLS
  version: "1.0.0"
  path: plugin

server:
  python: server.py
  env: {BLS_CATALOG: catalog-108.json}

files:
  - catalog-108.json

variants:
  plain:
    description: The server publishes no instructions
  guided:
    description: The server's instructions say what to do on gaps and ties
    env: {BLS_GUIDANCE: "1"}

loop:
  system_prompt: >-
    You answer questions about labor statistics with the tools you are given, and only from what they return.
    Call resolve first, with the indicator as the user asked for it, then fetch the best candidate.
    Fetch only series IDs that resolve returned; never invent one or take one from your own knowledge.
    If resolve returns no candidate, say that the data is not available.
    If candidates tie for the highest confidence, fetch nothing and ask the user which one is meant.

simulation:
  policy: policy.py

cases:
"""


def suite_text() -> str:
    """`bls-108.yaml`."""
    return HEAD + "\n".join(_case_text(question) for question in questions())


def _case_text(question: Question) -> str:
    best, fetched = ", ".join(question.best), ", ".join(question.fetched)
    expected_type = EXPECTED_TYPE[question.mechanism]
    tags = f"mechanism: {question.mechanism}, expected_type: {expected_type}, survey: {question.survey}"
    fetches = bool(question.fetched)
    lines = [
        f"  - id: {question.case}",
        f"    query: {question.text}",
        f"    tags: {{{tags}}}",
        "    direct:",
        "      tool: resolve",
        f"      arguments: {{indicators: [{{indicator: {question.indicator}}}]}}",
        "      expect:",
        "        results:",
        "          - tool: resolve",
        "            at: results[*].candidates[*]",
        "            highest: confidence",
        "            field: series_id",
        f"            exactly: [{best}]",
        "    expect:",
        f"      tools: [{'resolve, fetch_bls_data' if fetches else 'resolve'}]",
        "      arguments:",
        f'        - {{tool: fetch_bls_data, at: "series_ids[*]", exactly: [{fetched}]}}',
    ]
    if fetches:
        check = f'{{tool: fetch_bls_data, at: "series[*]", without: error, field: series_id, exactly: [{fetched}]}}'
        lines += ["      results:", f"        - {check}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    HERE.joinpath("catalog-108.json").write_text(catalog_text(), encoding="utf-8")
    HERE.joinpath("bls-108.yaml").write_text(suite_text(), encoding="utf-8")
