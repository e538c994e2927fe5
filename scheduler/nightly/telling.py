"""Tells receivers what a night came to: once each, tried again a bounded number of times, and never raising for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evalfarm.contracts.schedule import Night, NightEnd, Receiver, Told
from evalfarm.nights import Nights
from evalfarm.reports.night import slack
from scheduler.nightly.decisions import next_telling, to_tell
from scheduler.nightly.file import Declared
from scheduler.nightly.webhook import post

Post = Callable[[str, dict[str, Any]], str | None]
"""Sends a document to an address; None: it was taken, else why not."""


@dataclass(frozen=True)
class Teller:
    """Tells the receivers of one file. An attempt is claimed in the store first, so that two tellers make one."""

    nights: Nights
    declared: Declared
    environ: Mapping[str, str]  #: where the addresses of webhooks are
    say: Callable[[str], None]
    post: Post = post

    def tell(self, night: Night, end: NightEnd, now_s: float) -> bool:
        """Tell every receiver that is still to be told; whether all of them that could be were."""
        schedule = self.declared.schedule(night.schedule)
        told = True
        for name, receiver in to_tell(schedule, self.declared.said.receivers, end):
            attempt = next_telling(name, self.nights.tellings(night, name), now_s)
            if attempt is None or not self.nights.begin_telling(night, attempt):
                continue
            why = self._deliver(receiver, night, end)
            if why is not None:
                told = False
                place = self.declared.place("receivers", name)
                self.say(
                    f"schedule {night.schedule}: night {night.stamp}: {place}: receivers.{name} was not told: {why}"
                )
            self.nights.end_telling(night, attempt, Told(delivered=why is None, ended_at=now_s, why=why or ""))
        return told

    def _deliver(self, receiver: Receiver, night: Night, end: NightEnd) -> str | None:
        if receiver.folder is not None:
            return self._put_files(receiver.folder, night)
        address = self.environ.get(receiver.webhook_env or "", "").strip()
        if not address:
            return f"{receiver.webhook_env} is not set here"
        return self.post(address, slack(night, end))

    def _put_files(self, folder: str, night: Night) -> str | None:
        """Write the night's Markdown and JUnit files; why not, where that fails."""
        place = self.declared.beside(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
            for paper, suffix in (("report.md", ".md"), ("junit.xml", ".xml")):
                if (text := self.nights.paper(night, paper)) is not None:
                    (place / f"{night.run}{suffix}").write_text(text, encoding="utf-8")
        except OSError as error:
            return f"{place} cannot be written: {error.strerror}"
        return None
