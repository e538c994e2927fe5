"""What a night came to, as a team is told: a message for Slack and its like, and a page of Markdown."""

from typing import Any

from evalfarm.analysis.judgement.gate import Gate
from evalfarm.contracts.schedule import Night, NightEnd
from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.comparison.blocks import to_markdown
from evalfarm.reports.comparison.gate import report
from evalfarm.reports.run import markdown
from evalfarm.reports.safe_text import cut, in_markdown, one_line

#: Slack takes 3,000 characters in a section.
_MOST_TEXT = 2_800
_MOST_REASONS = 5


def title(night: Night, end: NightEnd) -> str:
    """One line: the verdict first."""
    late = ", late" if night.decision == "late" else ""
    return f"{end.verdict.upper()}: {end.schedule}, night of {_wall_clock(end.stamp)}{late}"


def lines(night: Night, end: NightEnd) -> tuple[str, ...]:
    """The sentences under it: why, and where to look."""
    told = list(end.reasons[:_MOST_REASONS])
    if left_out := len(end.reasons) - len(told):
        told.append(f"… and {left_out} more")
    if night.decision == "late":
        told.append(f"It ran late: {night.why}.")
    if end.verdict not in ("failed", "skipped"):
        told.append(f"The run's report: evalfarm report {night.run}")
    return tuple(told)


def slack(night: Night, end: NightEnd) -> dict[str, Any]:
    """The document that a Slack-compatible webhook takes."""
    heading = _mrkdwn(title(night, end))
    text = cut("\n".join(_mrkdwn(line) for line in lines(night, end)), _MOST_TEXT)
    body = f"*{heading}*\n{text}"
    return {"text": heading, "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": body}}]}


def page(night: Night, end: NightEnd, summary: RunSummary | None, gate: Gate | None) -> str:
    """GitHub-flavoured Markdown: the verdict, then the gate's report and the run's, as far as there are any."""
    parts = [f"# {in_markdown(title(night, end))}\n", *(f"{in_markdown(line)}  " for line in lines(night, end))]
    if gate is not None:
        parts += ["\n## Gate\n", to_markdown(report(gate))]
    if summary is not None:
        parts += ["", markdown.render(summary)]
    return "\n".join(parts).rstrip() + "\n"


def _wall_clock(stamp: str) -> str:
    return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]} {stamp[9:11]}:{stamp[11:]}"


def _mrkdwn(text: str) -> str:
    return one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
