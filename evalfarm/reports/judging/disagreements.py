"""One answer to be decided on, as a reviewer is shown it; and the list of all that are open."""

import json
from collections.abc import Sequence

from evalfarm.contracts.judging import Disagreement
from evalfarm.reports.comparison.blocks import Block, Listed, Said
from evalfarm.reports.numbers import plural


def listed(found: Sequence[Disagreement]) -> list[Block]:
    """All that are open, a line each."""
    if not found:
        return [Said("No label disagrees with another, or all have been decided.", finding=True)]
    lines = (
        f"{one.place}, case {one.case}: {told(one)}" + (f"; rests on {one.cites}" * bool(one.cites)) for one in found
    )
    return [
        Said(f"{plural(len(found), 'answer')} on which labels disagree", finding=True),
        Listed("Open disagreements", tuple(lines)),
    ]


def shown(one: Disagreement) -> list[Block]:
    """One of them, with everything that it takes to decide."""
    blocks: list[Block] = [Said(f"{one.place}, case {one.case}", finding=True), Said(f"Request: {one.request}")]
    if one.evidence:
        blocks.append(Listed("Evidence", evidence(one)))
    blocks += [Listed("Answer", (one.answer,)), Said(f"Labels: {told(one)}")]
    if one.reasons:
        blocks.append(Listed("Because", one.reasons))
    return [*blocks, Said(f"Rests on: {one.cites}")] if one.cites else blocks


def told(one: Disagreement) -> str:
    """`answer PASS, judge FAIL`."""
    return ", ".join(f"{who} {value}" for who, value in one.labels.items())


def evidence(one: Disagreement) -> tuple[str, ...]:
    """Every call with what came back."""
    return tuple(
        f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)}) → "
        f"{call.error or json.dumps(call.result, ensure_ascii=False)}"
        for call in one.evidence
    )
