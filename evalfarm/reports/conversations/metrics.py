"""The report of `evalfarm metrics`: the finding first, then each figure with its change, then who needs a look."""

from collections.abc import Collection, Iterator

from evalfarm.analysis.conversations.attention import Item
from evalfarm.analysis.conversations.metrics import Against, Judged, Metrics, MissShares, success_finding
from evalfarm.analysis.conversations.totals import FIGURES, LEVELS, RATES, Group, ToolGroup
from evalfarm.reports import numbers
from evalfarm.reports.comparison.blocks import Block, Listed, Said
from evalfarm.reports.comparison.points import factor, told_p, with_interval
from evalfarm.reports.conversations.changes import NOTHING, change, plain, written
from evalfarm.reports.table import Table

_SHORT_DIGEST = 8

FLAG_WORDS = {
    "writes": "Wrote to a server",
    "without_tools": "Ran without its tools",
    "succeeds_less": "Succeeds less often",
    "costs_more": "Costs more",
    "repeats": "Repeats calls",
    "tool_fails": "Tool fails",
}


def report(found: Metrics, shown: Collection[str]) -> list[Block]:
    """The whole report; `shown` names the levels whose groups are listed, `tool` among them."""
    against = found.against
    blocks: list[Block] = [
        *_opening(found),
        _attention(found.attention),
        _figures(found.all, against),
        _versions(found),
    ]
    for level in LEVELS:
        if level in shown:
            blocks.append(_level(level, found.levels[level], against.levels[level] if against else ()))
    if "tool" in shown and found.tools:
        blocks.append(_tools(found.tools, against.tools if against else ()))
    return [*blocks, *_misses(found.misses)]


def _opening(found: Metrics) -> Iterator[Said]:
    figures = found.all.figures
    yield Said(
        f"{found.name}: {numbers.plural(found.conversations, 'conversation')} of"
        f" {numbers.plural(found.all.cases, 'case')}, success {numbers.percent(figures['success'])}"
        f" (by the rules alone {numbers.percent(figures['base_success'])}),"
        f" {numbers.cost(figures['cost_usd'])} each.",
        finding=True,
    )
    if found.against is not None:
        yield from _against(found.against)
    if found.not_counted:
        yield Said(
            f"Not in these figures: {numbers.plural(found.not_counted, 'attempt')} that closed no trial or that"
            " infrastructure ended."
        )
    yield Said(
        "Every figure is a count, a sum or a fixed rule over what was recorded; no model scored anything. Whether the"
        " answers are right is the graders' to say: evalfarm report, evalfarm compare. Success takes a complete answer,"
        " which has a widget or as many characters as the suite's conversations.completed_chars, 200 by default; a call"
        " to the plugin; no error of a schema; no write; and the tools at hand."
    )


def _against(against: Against) -> Iterator[Said]:
    if against.judged is None:
        yield Said(f"NOT COMPARABLE with {against.name}: {against.why_not}. No change is judged.", finding=True)
        return
    yield from _judged(against.name, against.judged)


def _judged(name: str, judged: Judged) -> Iterator[Said]:
    success, cost = judged.success, judged.cost
    yield Said(
        f"Success against {name}: {success_finding(judged)} on new cases,"
        f" {with_interval(success.new_cases.estimate)} points over {numbers.plural(success.new_cases.cases, 'pair')};"
        f" on a rerun of these {success.same_cases_finding}.",
        finding=True,
    )
    tested = "" if cost.p is None else f", {told_p(cost.p)}"
    yield Said(
        f"Cost against {name}: {judged.cost_finding}, {factor(cost.factor)} over"
        f" {numbers.plural(cost.cases, 'pair')}{tested}.",
        finding=True,
    )


def _attention(items: tuple[Item, ...]) -> Listed:
    lines = tuple(f"{FLAG_WORDS[item.flag]}: {item.subject}: {item.told}; see {item.conversation}" for item in items)
    return Listed("Needs a look", lines or ("Nothing: every figure is within its threshold.",))


def _figures(now: Group, against: Against | None) -> Table:
    before = against.all if against else None
    names = [name for name in FIGURES if _is_told(name, now, before)]
    told = [(name, now.figures[name], before.figures[name] if before else None, name) for name in names]
    guards = dict.fromkeys((*now.guards, *(before.guards if before else ())))
    told += [
        (f"guard {guard}", now.guards.get(guard), before.guards.get(guard) if before else None, "guard")
        for guard in guards
    ]
    rows = [
        (head, written(figure, value), *((written(figure, was), change(figure, value, was)) if before else ()))
        for head, value, was, figure in told
    ]
    heads = ("figure", "now", *(("before", "change") if before else ()))
    return Table("Figures: shares, means per conversation, medians of latency", heads, tuple(rows), words=1)


def _is_told(name: str, now: Group, before: Group | None) -> bool:
    """Figures that are nothing in both, as error classes that never came up, are left out; shares never are."""
    return name in RATES or any(group.figures[name] for group in (now, before or now))


def _versions(found: Metrics) -> Table:
    """Those of the baseline first, where there is one."""
    before = [] if found.against is None else [("before", found.against.versions)]
    rows = tuple(
        (
            side,
            f"{version.plugin} {version.version}".strip(),
            version.variant,
            NOTHING if version.digest is None else version.digest.removeprefix("sha256:")[:_SHORT_DIGEST],
            *_row(version.group),
        )
        for side, versions in (*before, ("now", found.versions))
        for version in versions
    )
    heads = ("of", "plugin", "variant", "digest", *_HEADS)
    return Table("Versions of the plugin, oldest first", heads, rows, words=4)


_HEADS = ("n", "success", "cost", "turns", "calls", "failing")


def _row(group: Group) -> tuple[str, ...]:
    figures = group.figures
    return (
        f"{group.conversations:,}",
        numbers.percent(figures["success"]),
        numbers.cost(figures["cost_usd"]),
        plain(figures["turns"]),
        plain(figures["plugin_calls"]),
        plain(_figure(group, "failing_calls")),
    )


def _figure(group: Group, name: str) -> float | None:
    """One of the group's figures, or `failing_calls`: of a class or of none, as what needs a look has them."""
    if name != "failing_calls":
        return group.figures[name]
    of_a_class, of_none = group.figures["failed_calls"], group.figures["other_errors"]
    return None if of_a_class is None or of_none is None else of_a_class + of_none


def _level(level: str, groups: tuple[Group, ...], before: tuple[Group, ...]) -> Table:
    earlier = {group.name: group for group in before}
    names = dict.fromkeys([group.name for group in (*groups, *before)])
    now = {group.name: group for group in groups}
    rows = tuple(_level_row(name, now.get(name), earlier.get(name), bool(before)) for name in names)
    heads: tuple[str, ...] = ("n", "success", "cost", "calls", "failing")
    if before:
        heads = ("n", "success", "change", "cost", "change", "calls", "change", "failing", "change")
    return Table(f"By {level}", (level, *heads), rows, words=1)


def _level_row(name: str, now: Group | None, before: Group | None, compared: bool) -> tuple[str, ...]:
    cells = [name, f"{now.conversations:,}" if now else "0"]
    for figure in ("success", "cost_usd", "plugin_calls", "failing_calls"):
        value, was = (_figure(group, figure) if group else None for group in (now, before))
        cells += [written(figure, value), *((change(figure, value, was),) if compared else ())]
    return tuple(cells)


def _tools(tools: tuple[ToolGroup, ...], before: tuple[ToolGroup, ...]) -> Table:
    earlier = {(tool.kind, tool.name): tool for tool in before}
    rows = []
    for tool in tools:
        was = earlier.get((tool.kind, tool.name))
        changed = change("success", tool.failing_share, was.failing_share if was else None)
        rows.append(
            (
                tool.name,
                tool.kind,
                _why_it_fails(tool),
                f"{tool.calls:,}",
                f"{tool.conversations:,}",
                numbers.percent(tool.failing_share),
                *((changed,) if before else ()),
                f"{tool.repeated_calls:,}",
                f"{tool.writes:,}",
            )
        )
    heads = ("calls", "in", "failing", *(("change",) if before else ()), "again", "writes")
    return Table("By tool", ("tool", "kind", "fails by", *heads), tuple(rows), words=3)


def _why_it_fails(tool: ToolGroup) -> str:
    classes = {**tool.failed_by_class, "other_errors": tool.other_errors}
    told = [f"{count:,} {name.replace('_', ' ')}" for name, count in classes.items() if count]
    return ", ".join(told) or NOTHING


def _misses(shares: tuple[MissShares, ...]) -> Iterator[Table]:
    rows = tuple(
        (
            cell.cell,
            f"{cell.misses:,} of {cell.conversations:,}",
            miss.replace("_", " "),
            numbers.percent(cell.causes.get(miss, 0) / cell.misses),
            numbers.percent(count / cell.misses),
        )
        for cell in shares
        for miss, count in cell.shown.items()
    )
    if rows:
        yield Table(
            "What explains the misses: the share of misses whose cause it is, and that show it",
            ("model · harness · variant", "misses", "sign", "cause", "shown"),
            rows,
            words=3,
        )
