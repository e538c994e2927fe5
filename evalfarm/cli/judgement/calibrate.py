"""`evalfarm calibrate`: a judge against people's labels."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import TypeAdapter

from cases.answer_functions import load_functions
from cases.labels import Labels, read_labels_file, suite_beside
from cases.loader import LoadedSuite, file_digests, load_suite
from cases.policies import is_simulated
from evalfarm.analysis.judgement.calibration import About, between_judges
from evalfarm.analysis.judgement.calibration import calibrate as figures
from evalfarm.analysis.judgement.corrected import corrected_rates
from evalfarm.analysis.judgement.disagreements import RULES as RULES_LABEL
from evalfarm.analysis.judgement.judge_faults import name_faults
from evalfarm.analysis.judgement.targets import Judged, Target, pairs_of, targets
from evalfarm.cli.connecting import open_redis
from evalfarm.cli.judgement.judge_door import JudgeDoor, open_door
from evalfarm.cli.judgement.judges import check_judges
from evalfarm.cli.showing import show
from evalfarm.cli.stored import run_of
from evalfarm.contracts.base import digest_bytes
from evalfarm.contracts.calibration import Calibration, LabelsUse, Uses
from evalfarm.contracts.judging import JUDGE, JudgeIdentity, Opinion, PairOpinion
from evalfarm.errors import ExitCode
from evalfarm.judgings import Judgings, new_id
from evalfarm.reports.judging.calibration import report
from evalfarm.runstate import load_limits
from evalfarm.settings import Settings, load_settings
from evalfarm.store import Store
from graders.judge.ask import Heard, Judge, judge_answer, judge_pair
from graders.judge.exhibits import labelled_exhibit, rubric_of, rubrics_of
from graders.judge.prompt import identity
from graders.labelled import RULES, opinion_of_rules, rules_identity


@dataclass(frozen=True)
class _Held:
    """Everything that one judge said of a file of labels."""

    judged: tuple[Judged, ...]
    pairs: tuple[tuple[PairOpinion, tuple[Heard, ...]], ...]

    @property
    def costs(self) -> list[float | None]:
        """US dollars of every answer judged and every request about a pair."""
        alone = [opinion.cost_usd for one in self.judged for opinion in one.opinions]
        return alone + [heard.cost_usd for _, of_pair in self.pairs for heard in of_pair]

    @property
    def requests(self) -> int:
        """How many requests that took, tries of one request counted as one."""
        alone = sum(len(opinion.requests) for one in self.judged for opinion in one.opinions)
        return alone + sum(len(heard.requests) for _, of_pair in self.pairs for heard in of_pair)


@click.command(epilog="Example: evalfarm calibrate sim-judge-sound --labels labels/held-out.jsonl --suite support")
@click.argument("judges", metavar="JUDGE…", nargs=-1, required=True)
@click.option(
    "--labels",
    "labels_file",
    required=True,
    type=click.Path(path_type=Path),
    help="Labelled answers, one JSON object a line.",
)
@click.option("--suite", help="The suite that they label. [default: the one in a folder above the file]")
@click.option("--repeats", type=click.IntRange(min=1), default=2, show_default=True, help="How often each is judged.")
@click.option("--pairs", type=click.IntRange(min=0), default=40, show_default=True, help="Pairs judged in both orders.")
@click.option("--correct", "runs", multiple=True, metavar="RUN", help="Correct this run's pass rates. Repeatable.")
@click.option("--json", "form", flag_value="json", help="The calibrations as one JSON array.")
@click.option("--markdown", "form", flag_value="markdown", help="GitHub-flavoured Markdown.")
def calibrate(
    judges: tuple[str, ...],
    labels_file: Path,
    suite: str | None,
    repeats: int,
    pairs: int,
    runs: tuple[str, ...],
    form: str | None,
) -> int:
    """Measure a judge against labelled answers, and name its faults.

    JUDGE is a model, or the word rules for the suite's own facts; several are held against each other too. The judge
    sees request, evidence, criteria and answer, and never a label. Ends with 0 where no fault was found, and with 1
    where one was. Every use of the labels is recorded in the store.
    """
    settings = load_settings()
    loaded = load_suite(suite or suite_beside(labels_file))
    labels = read_labels_file(labels_file, loaded.suite)
    models = tuple(dict.fromkeys(judges))
    check_judges(settings, loaded.suite, [model for model in models if model != RULES])
    store = Store(settings.store_url)
    decisions = Judgings(store.objects).adjudications(loaded.suite.suite)
    categories = {case.id: case.category or "(none)" for case in loaded.suite.cases}
    shown = [(answer, labelled_exhibit(loaded.suite, answer)) for answer in labels.answers]
    wanted = targets(shown, categories, decisions)
    corrected = [run_of(store, name) for name in runs]
    held = _held(settings, loaded, models, wanted, repeats, pairs)
    found = []
    for model in models:
        alone = _calibration(store, loaded, labels, model, held[model])
        others = [between_judges(held[model].judged, held[one].judged, one) for one in models if one != model]
        grader = RULES_LABEL if model == RULES else JUDGE
        rates = [rate for run in corrected for rate in corrected_rates(run, store.results(run), alone.overall, grader)]
        whole = alone.model_copy(update={"other_judges": tuple(others), "corrected": tuple(rates)})
        found.append(name_faults(whole))
        Judgings(store.objects).put_calibration(found[-1])
    show(found, TypeAdapter(list[Calibration]), report, form)
    return int(ExitCode.REGRESSED if any(one.findings for one in found) else ExitCode.OK)


def _held(
    settings: Settings, loaded: LoadedSuite, models: Sequence[str], wanted: Sequence[Target], repeats: int, pairs: int
) -> dict[str, _Held]:
    """What each judge says of every answer; the rules are neither asked again nor about pairs."""
    asked = [model for model in models if model != RULES]
    held = asyncio.run(_ask(settings, loaded, asked, wanted, repeats, pairs)) if asked else {}
    return held | {RULES: _by_rules(loaded, wanted)} if RULES in models else held


async def _ask(
    settings: Settings, loaded: LoadedSuite, models: Sequence[str], wanted: Sequence[Target], repeats: int, pairs: int
) -> dict[str, _Held]:
    limits, most = load_limits(settings.limits), loaded.suite.judging.concurrency
    async with AsyncExitStack() as stack:
        # Where there are limits, what goes on in the farm at the same time counts against them too.
        redis = None if settings.limits is None else stack.enter_context(open_redis(settings))[1]
        door = await open_door(settings, loaded.suite, loaded.folder, models, stack, redis)
        rooms = {model: asyncio.Semaphore(min(most, limits.of(model).concurrency or most)) for model in models}
        return {
            model: await _hold(_Asking(loaded, door, model, rooms[model]), wanted, repeats, pairs) for model in models
        }


def _by_rules(loaded: LoadedSuite, wanted: Sequence[Target]) -> _Held:
    functions = load_functions(loaded.suite, loaded.folder)
    told = (opinion_of_rules(loaded.suite, target.answer, target.exhibit, functions) for target in wanted)
    return _Held(tuple(Judged(target, (opinion,)) for target, opinion in zip(wanted, told, strict=True)), ())


@dataclass(frozen=True)
class _Asking:
    """One judge being held against labels, with room for so many requests at a time."""

    loaded: LoadedSuite
    door: JudgeDoor
    model: str
    room: asyncio.Semaphore

    async def answer(self, target: Target, repeat: int) -> Opinion:
        suite = self.loaded.suite
        rubric = rubric_of(suite, suite.case(target.answer.case))
        assert rubric is not None  # the file of labels was held against the suite
        async with self.room:
            seed = _seed(target.answer.id, repeat)
            return await judge_answer(Judge(self.model, self.door), rubric, target.exhibit, seed)

    async def pair(self, right: Target, wrong: Target) -> tuple[PairOpinion, tuple[Heard, ...]]:
        suite = self.loaded.suite
        rubric = rubric_of(suite, suite.case(right.answer.case))
        assert rubric is not None
        async with self.room:
            seed = _seed(f"{right.answer.id}/{wrong.answer.id}", 0)
            return await judge_pair(Judge(self.model, self.door), rubric, right.exhibit, wrong.exhibit, seed)


async def _hold(asking: _Asking, wanted: Sequence[Target], repeats: int, pairs: int) -> _Held:
    asked = [asking.answer(target, repeat) for target in wanted for repeat in range(repeats)]
    opinions = await asyncio.gather(*asked)
    judged = tuple(
        Judged(target, tuple(opinions[at * repeats : (at + 1) * repeats])) for at, target in enumerate(wanted)
    )
    return _Held(judged, tuple(await asyncio.gather(*(asking.pair(*pair) for pair in pairs_of(wanted, pairs)))))


def _calibration(store: Store, loaded: LoadedSuite, labels: Labels, model: str, held: _Held) -> Calibration:
    suite, at = loaded.suite, time.time()
    judge = _identity(loaded, labels, model)
    about = About(
        id=new_id(at),
        at=at,
        judge=judge,
        simulated=is_simulated(model),
        suite=suite.suite,
        suite_version=suite.version,
        labels=labels.digest,
        purpose=labels.purpose,
        uses=_note_use(store, labels, judge, at),
    )
    return figures(about, held.judged, [pair for pair, _ in held.pairs], held.costs, held.requests)


def _identity(loaded: LoadedSuite, labels: Labels, model: str) -> JudgeIdentity:
    if model == RULES:
        return rules_identity(loaded.suite, file_digests(loaded).get(loaded.suite.answer_functions or "", ""))
    return identity(model, rubrics_of(loaded.suite, {answer.case for answer in labels.answers}))


def _note_use(store: Store, labels: Labels, judge: JudgeIdentity, at: float) -> Uses:
    use = LabelsUse(labels=labels.digest, purpose=labels.purpose, judge=judge.digest, model=judge.model, at=at)
    uses = Judgings(store.objects).note_use(use)
    return Uses(
        times=len(uses),
        judges=len({one.model for one in uses}),
        versions=len({one.judge for one in uses if one.model == judge.model}),
    )


def _seed(what: str, repeat: int) -> int:
    """63 bits for a simulated judge: the same for the same answer and repeat, whenever it is calibrated."""
    return int(digest_bytes(f"{what}/{repeat}".encode()).removeprefix("sha256:")[:16], 16) >> 1
