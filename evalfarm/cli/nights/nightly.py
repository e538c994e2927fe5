"""Nights seen through: decided, started, judged, told. Used by `evalfarm beat` and `evalfarm schedule run`.

Each look takes every night one step further. Every step is create-only in the store or safe to repeat, so that two
who look at once, or one that dies in between, change nothing.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from evalfarm.analysis.judgement.comparability import case_digests
from evalfarm.analysis.judgement.gate import Gate, GateQuestion, judge_run
from evalfarm.analysis.judgement.gate_record import gate_record
from evalfarm.analysis.judgement.notes import ArmNote, Source
from evalfarm.analysis.statistics.regression import NIGHTLY, NightlyRule
from evalfarm.cli.nights.opening import rule_of
from evalfarm.contracts.schedule import Night, NightEnd
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import EvalFarmError, InfrastructureError, UnknownName, UsageError
from evalfarm.nights import Nights
from evalfarm.outcomes import Outcomes
from evalfarm.reports import junit
from evalfarm.reports.night import page
from evalfarm.settings import environment
from evalfarm.store import Store
from scheduler.nightly import decisions
from scheduler.nightly.file import Declared
from scheduler.nightly.telling import Post, Teller
from scheduler.nightly.webhook import post

#: Nights of a schedule that are looked at: far more than a baseline holds, also after weeks of outages.
RECENT = 60
#: Of them, those whose receivers may still have to be told.
TOLD = 5
#: Seconds after a night's end within which somebody is told of it.
TOLD_WITHIN_S = 86_400.0


class Opener(Protocol):
    """Opens the runs of nights, for whoever tends runs; each raises EvalFarmError where it cannot."""

    def open_night(self, declared: Declared, night: Night, now_s: float) -> object:
        """Open the run of a night."""

    def open_confirm(self, run: str, arms: Sequence[ArmNote], repeats: int, name: str) -> object:
        """Open the confirm run of a night's run, under a name."""


@dataclass(frozen=True)
class Watch:
    """Sees the nights of one file's schedules through."""

    store: Store
    declared: Declared
    opener: Opener
    say: Callable[[str], None]
    clock: Callable[[], float] = time.time
    post: Post = post
    opened: set[str] = field(default_factory=set)  #: runs that were seen in the store

    @cached_property
    def nights(self) -> Nights:
        """Where they are kept."""
        return Nights(self.store.objects)

    def look(self) -> None:
        """Take every schedule's nights a step further; what goes wrong with one is said, and keeps no other."""
        for name in self.declared.said.schedules:
            try:
                self.decide(name)
                self.advance(name)
                self.tell(name)
            except EvalFarmError as error:
                self.say(f"schedule {name}: {error}")

    def decide(self, name: str) -> None:
        """Write down what becomes of each time at which a schedule was due."""
        now_s, nights = self.clock(), self.nights
        known = nights.of(name, RECENT)
        running = decisions.running_of(known, nights.ends(known))
        schedule, since_s = self.declared.schedule(name), nights.since(name, now_s)
        for night in decisions.decide(name, schedule, since_s, known, running, now_s):
            if nights.put(night):
                self.say(f"schedule {name}: night {night.stamp} {night.decision} {night.why}".rstrip())

    def advance(self, name: str) -> tuple[NightEnd, ...]:
        """Take the nights of a schedule that have not ended a step further; those that did so now."""
        known = self.nights.of(name, RECENT)
        ends = self.nights.ends(known)
        found = (self._step(night, known, ends) for night in known if night.stamp not in ends)
        ended = tuple(end for end in found if end is not None and self.nights.put_end(end))
        for end in ended:
            self.say(f"schedule {name}: night {end.stamp}: {end.verdict} {'; '.join(end.reasons)}".rstrip())
        return ended

    def tell(self, name: str) -> None:
        """Tell the receivers of a schedule what its last nights came to, as far as they were not told."""
        known, now_s = self.nights.of(name, TOLD), self.clock()
        ends = self.nights.ends(known)
        teller = Teller(self.nights, self.declared, environment(), self.say, self.post)
        for night in known:
            # A receiver that is new is not told of nights long past.
            if night.stamp in ends and now_s - ends[night.stamp].ended_at < TOLD_WITHIN_S:
                teller.tell(night, ends[night.stamp], now_s)

    def _step(self, night: Night, known: list[Night], ends: dict[str, NightEnd]) -> NightEnd | None:
        """The end of a night, where it has come to one."""
        if night.decision == "skipped":
            end = decisions.skipped(night)
            self._put_papers(night, end, None, None)
            return end
        if self._manifest(night.run) is None and (failed := self._start(night)) is not None:
            self._put_papers(night, failed, None, None)
            return failed
        summary = self.store.get_summary(night.run)
        return None if summary is None else self._judge(night, summary, known, ends)

    def _start(self, night: Night) -> NightEnd | None:
        """Open a night's run; its end, where that cannot be."""
        try:
            self.opener.open_night(self.declared, night, self.clock())
        except InfrastructureError as error:
            if self.clock() - night.decided_at < decisions.START_PATIENCE_S:
                self.say(f"schedule {night.schedule}: night {night.stamp} cannot start yet: {error.message}")
                return None
            return decisions.not_started(night, error.message, self.clock())
        except EvalFarmError as error:
            if self._manifest(night.run) is not None:  # somebody else has opened it meanwhile, from another checkout
                return None
            return decisions.not_started(night, error.message, self.clock())
        self.say(f"schedule {night.schedule}: run {night.run} started")
        return None

    def _judge(
        self, night: Night, summary: RunSummary, known: list[Night], ends: dict[str, NightEnd]
    ) -> NightEnd | None:
        """The end of a night whose run is sealed; None: its confirm run is still to come."""
        schedule = self.declared.schedule(night.schedule)
        try:
            rule = rule_of(self.declared, schedule)
            names = decisions.accepted_runs(schedule, known, ends, night)[-rule.most_nights :]
            found = self._gate(night, summary, rule, names)
        except UsageError as error:
            return self._unjudged(night, summary, error.message, first=False)
        if found is None:
            return self._unjudged(night, summary, "there is no accepted night before it yet", first=True)
        if found.to_confirm and schedule.baseline.confirm and self._confirms(night, found):
            return None
        # Of two who judge a night at once, or one who does it again, there is one record with one time.
        kept = self.nights.put_gate(night, gate_record(found, self.clock()))
        Outcomes(self.store.objects).add_gate(kept, "night")
        end = decisions.judged(night, summary, found, self.clock())
        self._put_papers(night, end, summary, found)
        return end

    def _gate(self, night: Night, summary: RunSummary, rule: NightlyRule, names: Sequence[str]) -> Gate | None:
        """What the gate says of a night's run; None: there is nothing to hold it against."""
        asked = self.declared.schedule(night.schedule).baseline
        baselines = [source for name in names if (source := self._source(name)) is not None]
        if not baselines and asked.at_least is None:
            return None
        run = Source(summary, case_digests(self.store.get_plan(night.run)))
        question = GateQuestion(rule, asked.at_least, frozenset(asked.allow_different))
        return judge_run(run, baselines, self._source(confirm_name(night.run)), question)

    def _unjudged(self, night: Night, summary: RunSummary, why: str, *, first: bool) -> NightEnd:
        end = decisions.unjudged(night, summary, NIGHTLY.most_undecided, why, first=first, now_s=self.clock())
        self._put_papers(night, end, summary, None)
        return end

    def _confirms(self, night: Night, gate: Gate) -> bool:
        """Whether there is a confirm run that this gate has not taken in yet; it is opened where there is none."""
        name = confirm_name(night.run)
        if self._manifest(name) is not None:
            return gate.confirm is None
        try:
            self.opener.open_confirm(night.run, gate.to_confirm, gate.rule.confirm_repeats, name)
        except EvalFarmError as error:
            self.say(f"schedule {night.schedule}: confirm run {name} cannot start: {error.message}")
            waited_s = self.clock() - night.decided_at
            return isinstance(error, InfrastructureError) and waited_s < decisions.CONFIRM_PATIENCE_S
        self.say(f"schedule {night.schedule}: confirm run {name} started")
        return True

    def _put_papers(self, night: Night, end: NightEnd, summary: RunSummary | None, gate: Gate | None) -> None:
        """Keep what receivers are given; before the end, so that whoever sees that has these."""
        self.nights.put_paper(night, "report.md", page(night, end, summary, gate))
        if summary is not None:
            self.nights.put_paper(night, "junit.xml", junit.render(summary, gate))

    def _source(self, run: str) -> Source | None:
        """A sealed run as a gate reads it; None: it is not sealed, or is no longer there."""
        with suppress(UnknownName):
            if (summary := self.store.get_summary(run)) is not None:
                return Source(summary, case_digests(self.store.get_plan(run)))
        return None

    def _manifest(self, run: str) -> str | None:
        """The run's name, if the store has it."""
        if run not in self.opened:
            with suppress(UnknownName):
                self.opened.add(self.store.get_manifest(run).run)
        return run if run in self.opened else None


def confirm_name(run: str) -> str:
    """The confirm run of a night's run: one name, so that it is opened once."""
    return f"{run}-confirm"
