"""A run's judges are asked once its last trial has closed, and before it is sealed.

All of the run's answers are stored by then, so nothing that a judge does can touch a trial, and trials never wait for
a judge's limits. The judging's plan is fixed create-only, opinions are create-only, and so are the results that come
of them: any number of tenders may do this at once, and a lost queue is opened anew from what is stored.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import get_args

from evalfarm.analysis.judgement.disagreements import RULES
from evalfarm.broker import App, send_judgings, waiting_judgings
from evalfarm.contracts.judging import JUDGE, JudgingItem, JudgingPlan, JudgingTally, TrialOpinions
from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import LabelValue, Result, RunSummary
from evalfarm.judgings import Judgings
from evalfarm.reports.numbers import cost, plural
from evalfarm.runstate import Client, JudgingProgress, JudgingQueue, Kept, Ledger
from evalfarm.store import Store

#: Seconds after which an answer that was handed to the judges and that nobody took up is handed out anew: its message
#: may have waited behind trials of other runs.
HOLD_S = 900.0
#: Seconds after which it is handed out anew where no message waits: its own died with the worker that took it.
LOST_S = 30.0

Conclude = Callable[[Plan, Result, Sequence[TrialOpinions], str], Result]
"""A result with the label of its judges, from all attempts at judging it; or why they were not asked.

Handed in, because the scheduler never judges.
"""


Concluded = tuple[Result, tuple[TrialOpinions, ...]]
"""A result with its judges' label, and all attempts at judging it."""


@dataclass(frozen=True)
class Judging:
    """Has runs judged; one for all runs that a scheduler tends."""

    store: Store
    redis: Client
    app: App
    conclude: Conclude
    plans: dict[str, JudgingPlan] = field(default_factory=dict)  #: those begun here

    def tend(self, plan: Plan) -> bool:
        """Do what is due for the judging of a run whose results are all in the store. True: it is done."""
        if not plan.judges:
            return True
        judging = self._plan(plan)
        queue = JudgingQueue(self.redis, plan.run)
        if not queue.is_open:
            if self.store.judged(plan.run) is not None:
                return True
            queue.open(len(judging.items), self._kept(judging), plan.suite.judging.max_cost_usd)
        lost_s = HOLD_S if waiting_judgings(self.app) else LOST_S
        send_judgings(self.app, plan.run, queue.take(plan.suite.judging.concurrency, HOLD_S, lost_s))
        progress = queue.progress()
        if progress.left:
            return False
        why = _not_asked(plan, progress, Ledger(self.redis, plan.run).money(0).budget_usd)
        concluded = list(self._concluded(plan, judging, why))
        Judgings(self.store.objects).put_tally(tally_of(plan.run, concluded))
        self.store.put_judged(plan.run, [result for result, _ in concluded])
        queue.close()
        return True

    def _plan(self, plan: Plan) -> JudgingPlan:
        if plan.run not in self.plans:
            kept = Judgings(self.store.objects)
            known = kept.plan(plan.run)
            self.plans[plan.run] = known or kept.fix_plan(judging_plan(plan, self.store.results(plan.run)))
        return self.plans[plan.run]

    def _kept(self, judging: JudgingPlan) -> list[Kept]:
        """The attempts whose opinions are stored: some only where Redis was lost while judges were at work."""
        kept = Judgings(self.store.objects)
        asked = kept.answers_with_opinions(judging.run)
        return [
            Kept(item, one.attempt, one.cost_usd, done=not one.outage)
            for item, answer in enumerate(judging.items)
            if answer.index in asked
            for one in kept.opinions(judging.run, answer.index)
        ]

    def _concluded(self, plan: Plan, judging: JudgingPlan, why: str) -> Iterator[Concluded]:
        kept, waiting = Judgings(self.store.objects), {item.index for item in judging.items}
        for result in self.store.results(plan.run):
            if result.trial.index in waiting:
                attempts = kept.opinions(plan.run, result.trial.index)
                yield self.conclude(plan, result, attempts, why), attempts


def _not_asked(plan: Plan, progress: JudgingProgress, budget_usd: float | None) -> str:
    """Why an answer that no judge looked at was not judged."""
    if progress.stopped_by == "judges":
        return f"the judges' budget of ${plan.suite.judging.max_cost_usd:g} was spent"
    if progress.stopped_by == "run":
        return f"the run's budget of ${budget_usd:g} was spent"
    return "its judging was lost each time that it was begun"


def judging_plan(plan: Plan, results: Iterator[Result]) -> JudgingPlan:
    """Which results go to the judges: those of cases with a rubric that ended with an answer."""
    judged = {case.id for case in plan.suite.cases if case.rubric is not None}
    items = [
        JudgingItem(index=result.trial.index, attempt=result.attempt)
        for result in results
        if result.trial.case in judged and result.outcome == "finished" and result.trial.arm.harness != "direct"
    ]
    return JudgingPlan(run=plan.run, items=tuple(sorted(items, key=lambda item: item.index)))


def tally_of(run: str, concluded: Sequence[Concluded]) -> JudgingTally:
    """What came of a run's judging."""
    told = [{label.grader: label.value for label in result.labels} for result, _ in concluded]
    labels = [values[JUDGE] for values in told]
    attempts = [attempt for _, tried in concluded for attempt in tried]
    costs = [attempt.cost_usd for attempt in attempts]
    return JudgingTally(
        run=run,
        labels={value: labels.count(value) for value in get_args(LabelValue)},
        attempts=len(attempts),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        disagreements=sum({values.get(RULES), values[JUDGE]} == {"PASS", "FAIL"} for values in told),
        not_asked=sum(not tried for _, tried in concluded),
    )


def with_judging(summary: RunSummary, plan: Plan, store: Store) -> RunSummary:
    """The summary with what its judges cost, and notes on what they did and what is left for people to settle."""
    tally = Judgings(store.objects).tally(plan.run) if plan.judges else None
    if tally is None:
        return summary
    told = ", ".join(f"{count} {value}" for value, count in tally.labels.items())
    spent = f"{plural(tally.attempts, 'judging')}, {cost(tally.cost_usd)}"
    notes = [f"Judged by {', '.join(plan.judges)}: {told} ({spent}, which is in no other figure)."]
    if tally.not_asked:
        notes.append(f"NOT JUDGED: {plural(tally.not_asked, 'answer')}, which are inconclusive; each says why.")
    if tally.disagreements:
        differ = plural(tally.disagreements, "answer")
        notes.append(f"Rules and judge disagree on {differ}; settle them with: evalfarm adjudicate {plan.run}")
    return summary.model_copy(update={"notes": (*summary.notes, *notes), "judges_usd": tally.cost_usd})
