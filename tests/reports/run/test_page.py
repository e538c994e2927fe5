import re
from collections.abc import Callable, Iterable
from html.parser import HTMLParser

import pytest

from evalfarm.contracts.verdict import Rate, Result, RunSummary
from evalfarm.reports.run import findings, page

VOID = {"meta", "br"}


class Page(HTMLParser):
    """What a reader gets of a page: its elements, its text, the cells of its tables."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.opened: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.rows: list[list[str]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag in ("br", "span", "li", "p", "div", "dt", "dd"):
            self.handle_data(" ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    def cells(self, *first: str) -> list[str]:
        """The row that begins with these cells."""
        rows = [[" ".join(cell.split()) for cell in row] for row in self.rows]
        return next(row for row in rows if row[: len(first)] == list(first))


@pytest.fixture
def parsed(summary: RunSummary) -> Page:
    return Page(page.render(summary))


def test_every_element_is_closed(parsed: Page) -> None:
    assert parsed.open == []


def test_the_finding_and_the_five_counts_come_first(parsed: Page, summary: RunSummary) -> None:
    words = " ".join(parsed.text.replace("\u00a0", " ").split())
    order = [
        findings.identity(summary),
        findings.weakest_arm(summary),
        findings.broken_levels(summary),
        findings.shakiest_arm(summary),
        "90 planned 80 passed 7 failed 1 inconclusive 1 infra failed 1 not run",
        "SIMULATED: a simulated model took part",
        "Isolation: cell",
        "Cases that did not pass",
        "evalfarm show bls-20260131-080509",
        "Which level broke first",
        "Readings that held: 12",
        "Pass rates",
        "Steadiness, effort, latency and cost",
        "Case by repeat",
        "Flips against repeats",
        "Latency on a log axis",
        "By tag",
        "Every trial",
        "arm model × harness × variant",
        "Next",
        "Manifest",
    ]
    at = 0
    for said in order:
        at = words.index(said, at)


def test_a_case_that_failed_is_told_with_what_was_asked_and_expected(parsed: Page) -> None:
    words = " ".join(parsed.text.split())
    told = words[words.index("consumer-price-index: 3 failed of 3") :]
    assert "fetch_bls_data asked for CUUR0000SA0, which is not among the expected series" in told
    assert "asked What about consumer-price-index? expected calls of resolve no call of fetch_bls_data" in told


def test_the_page_says_what_its_words_mean(parsed: Page) -> None:
    words = " ".join(parsed.text.split())
    for said in (
        "variant guided The server says what to do on gaps",
        "D the chance that two reruns of one case end differently",
        "One case, so no interval and no row: 2 values (mechanism=coverage_gap, mechanism=ambiguous_concept).",
    ):
        assert said in words


def test_an_arm_is_told_with_its_rate_counts_and_effort(parsed: Page) -> None:
    arm = "sim-flaky codex · plain"
    rated = parsed.cells(arm, "93.3 %")
    assert rated == [
        arm,
        "93.3 %",
        "[44.8, 99.6] 73.3 … 93.3 [30.7, 99.5]",
        "",
        "15",
        "11",
        "1",
        "1",
        "1",
        "1",
    ]
    name = ("sim-flaky", "codex", "plain")
    assert parsed.cells(*name, "1 of 5 at 3")[4:] == ["20.0 [3.6, 62.4]", "13.3 [1.2, 65.2]"]
    assert parsed.cells(*name, "1.11 [?, ?]")[4:] == ["1.42 [1.11, ?]", "0"]


def test_the_interval_is_drawn_where_it_lies(parsed: Page) -> None:
    drawn = [attrs for tag, attrs in parsed.opened if tag == "path" and attrs["class"] == "span"]
    points = [attrs["cx"] for tag, attrs in parsed.opened if tag == "circle" and attrs.get("r") == "2.6"]
    assert drawn[3]["d"] == "M23.07 5H88.24"
    assert points == ["100.00", "100.00", "100.00", "60.00", "100.00", "93.33"]


def test_nothing_is_drawn_where_nothing_was_decided(summarized: Callable[[Iterable[Result]], RunSummary]) -> None:
    parsed = Page(page.render(summarized([])))
    assert not [tag for tag, _ in parsed.opened if tag == "circle"]
    assert page.bar(Rate(value=None, low=None, high=None)) is None


def test_the_grid_has_a_mark_for_every_trial(parsed: Page, summary: RunSummary) -> None:
    marks = [attrs["title"] for tag, attrs in parsed.opened if tag == "span" and "title" in attrs]
    assert len(marks) == summary.planned
    row = parsed.cells("consumer-price-index mechanism=coverage_gap")
    assert [cell.replace(" ", "") for cell in row[1:]] == ["✓✓✓", "✓✓✓", "✓✓✓", "✗✗✗", "✓✓✓", "✓✓!"]
    assert "trial 74, repeat 3: infra failed" in marks


def test_the_counts_are_parts_of_one_bar(summary: RunSummary) -> None:
    parts = page.segments(summary)
    assert [(part.words, part.trials) for part in parts] == [
        ("passed", 80),
        ("failed", 7),
        ("inconclusive", 1),
        ("infra failed", 1),
        ("not run", 1),
    ]
    assert sum(part.width for part in parts) == pytest.approx(100)
    assert [part.start for part in parts[1:]] == pytest.approx([part.start + part.width for part in parts[:-1]])


def test_text_from_outside_is_shown_and_never_run(summary: RunSummary) -> None:
    hostile = '<script>alert(1)</script> \x1b[2J & "quoted" \''
    broken = next(case for case in summary.cases if case.labels["failed"])
    cell = summary.cells[0].model_copy(update={"model": "<b>m</b>"})
    case = broken.model_copy(update={"reasons": (hostile,)} | cell.model_dump(include={"model", "harness", "variant"}))
    changed = {"cells": (cell,), "cases": (case,), "label": "</title><img src=x onerror=alert(1)>"}
    source = page.render(summary.model_copy(update=changed))
    parsed = Page(source)
    assert '<script>alert(1)</script> \\x1b[2J & "quoted" \'' in parsed.text
    assert "<b>m</b>" in parsed.text
    assert {tag for tag, _ in parsed.opened}.isdisjoint({"script", "img"})
    assert "\x1b" not in source


def test_the_page_asks_the_network_for_nothing(parsed: Page, summary: RunSummary) -> None:
    asking = {"src", "href", "srcset", "data", "action", "poster", "xlink:href"}
    assert [attrs for _, attrs in parsed.opened if asking & set(attrs)] == []
    assert not re.search(r"url\(|@import|https?://", page.render(summary))
    policy = next(attrs for tag, attrs in parsed.opened if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_what_scrolls_can_be_reached_by_keyboard_and_has_a_name(parsed: Page) -> None:
    scrolled = [attrs for _, attrs in parsed.opened if str(attrs.get("class")).startswith("scroll")]
    names = {attrs.get("id") for _, attrs in parsed.opened}
    assert len(scrolled) > 10
    assert all(attrs["tabindex"] == "0" and attrs["aria-labelledby"] in names for attrs in scrolled)


def test_no_two_elements_share_a_name(parsed: Page) -> None:
    names = [attrs["id"] for _, attrs in parsed.opened if "id" in attrs]
    assert sorted(names) == sorted(set(names))


def test_the_page_follows_the_readers_colours_and_width(summary: RunSummary) -> None:
    source = page.render(summary)
    assert "@media (prefers-color-scheme: dark)" in source
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in source


def test_the_manifest_ends_the_page_with_every_digest(parsed: Page, summary: RunSummary) -> None:
    manifest = parsed.text[parsed.text.index("Manifest: what exactly was run") :]
    for said in (*summary.manifest.digests.values(), "2026-01-31 08:05:09 UTC", "expected_type=exact", "0.163.0"):
        assert said in manifest
    assert [tag for tag, _ in parsed.opened][-60:].count("details") == 1


def test_every_picture_stands_beside_its_table(parsed: Page) -> None:
    tags = [(tag, attrs.get("class")) for tag, attrs in parsed.opened]
    places = [at for at, (_, kind) in enumerate(tags) if kind == "scroll drawings"]
    assert len(places) == 3
    for at in places:
        following = [tag for tag, _ in tags[at:]]
        assert following.index("details") < following.index("section")
    assert ("svg", "plot") in tags


def test_a_large_run_is_drawn_as_a_map_alone(summary: RunSummary) -> None:
    assert "Every trial" not in Page(page.render(summary.model_copy(update={"planned": page.MOST_MARKS + 1}))).text


def test_rows_from_elsewhere_have_no_run_to_go_on_with(summary: RunSummary) -> None:
    told = {"manifest": None, "breaks": (), "notes": ("Columns that are not read: extra.",)}
    text = Page(page.render(summary.model_copy(update=told))).text
    assert "FOREIGN: these rows were not produced by evalfarm" in text
    assert "Columns that are not read: extra." in text
    for absent in ("evalfarm show", "Manifest", "Which level broke first"):
        assert absent not in text
