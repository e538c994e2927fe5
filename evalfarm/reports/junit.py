"""A run as JUnit XML, which every continuous integration shows: one suite per arm, one test per case.

A case with a failed trial fails; one that infrastructure kept from running is an error; one without a decided trial
is skipped. Where a gate judged the run, a suite of its own says what it found, arm by arm.
"""

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from evalfarm.analysis.judgement.gate import Gate, GatedArm
from evalfarm.contracts.verdict import CaseSummary, CellSummary, RunSummary
from evalfarm.reports.numbers import plural
from evalfarm.reports.safe_text import cut

_REASON_LENGTH = 2_000
#: What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(summary: RunSummary, gate: Gate | None = None) -> str:
    """The document; ends with a newline."""
    root = Element("testsuites", name=_xml(f"{summary.suite}: {summary.run}"))
    for cell in summary.cells:
        _suite(root, _arm(cell), [_case(one) for one in summary.cases if _arm(one) == _arm(cell)])
    if gate is not None:
        _suite(root, "gate", [_gated(arm) for arm in gate.arms])
    for total in ("tests", "failures", "errors", "skipped"):
        root.set(total, str(sum(int(suite.get(total, "0")) for suite in root)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Element, name: str, cases: Sequence[Element]) -> None:
    counts = {kind: sum(case.find(kind) is not None for case in cases) for kind in ("failure", "error", "skipped")}
    suite = SubElement(
        root,
        "testsuite",
        name=_xml(name),
        tests=str(len(cases)),
        failures=str(counts["failure"]),
        errors=str(counts["error"]),
        skipped=str(counts["skipped"]),
    )
    for case in cases:
        case.set("classname", _xml(name))
        suite.append(case)


def _case(case: CaseSummary) -> Element:
    told = Element("testcase", name=_xml(case.case), time=f"{case.latency_s or 0.0:.3f}")
    planned, count = sum(case.labels.values()), case.labels.get
    reasons = "\n".join(case.reasons)
    if failed := count("failed", 0):
        _add(told, "failure", f"{failed} of {plural(planned, 'trial')} failed", reasons)
    elif infra := count("infra_failed", 0):
        _add(told, "error", f"infrastructure failed {infra} of {plural(planned, 'trial')}", reasons)
    elif not count("passed", 0):
        _add(told, "skipped", f"none of {plural(planned, 'trial')} was decided", reasons)
    return told


def _gated(arm: GatedArm) -> Element:
    told = Element("testcase", name=_xml(arm.arm.name), time="0.000")
    if arm.verdict == "regressed":
        _add(told, "failure", "regressed", "\n".join(arm.reasons))
    elif arm.verdict == "inconclusive":
        _add(told, "skipped", "inconclusive", "\n".join(arm.reasons))
    return told


def _add(case: Element, kind: str, message: str, text: str) -> None:
    SubElement(case, kind, message=_xml(message)).text = _xml(cut(text, _REASON_LENGTH))


def _arm(told: CellSummary | CaseSummary) -> str:
    return f"{told.model} / {told.harness} / {told.variant}"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
