"""Answers of a stored run drawn at random for people to label, and the pass rates that their labels give."""

import time
from collections.abc import Iterable, Mapping

from evalfarm.analysis.judgement.disagreements import still_open, to_decide
from evalfarm.analysis.judgement.drawn import draw, stratified_rates
from evalfarm.cli.stored import summary_of
from evalfarm.contracts.drawn import Draw, StratifiedRate
from evalfarm.contracts.judging import Disagreement
from evalfarm.errors import UsageError
from evalfarm.judgings import Judgings
from evalfarm.store import Store


def make_draw(store: Store, run: str, each: int, seed: int | None) -> Draw:
    """Draw `each` answers of every arm of a finished run, and keep the draw; a kept one of this length stays.

    All draws of a run have one seed, the first one's: a longer draw holds every shorter one, and nobody can draw again
    until the answers please. Raises UsageError for another seed, and for a run that is not finished or not judged.
    """
    kept = Judgings(store.objects)
    earlier = kept.draws(run)
    first = earlier[0].seed if earlier else seed or 0
    if seed not in (None, first):
        raise UsageError(
            f"answers of run {run!r} were drawn with seed {first}; another one would be a choice between draws",
            f"leave --seed out: --draw {each} then holds the earlier draws, or is their beginning",
        )
    summary_of(store, run)  # a run is judged before it is sealed, so that no label is still to come
    return kept.fix_draw(draw(run, store.results(run), each=each, seed=first, at=time.time()))


def undecided(store: Store, made: Draw) -> tuple[Disagreement, ...]:
    """The drawn answers that nobody has decided on, equal ones once, with no automatic label on them."""
    found = {one.subject: one for one in _drawn_answers(store, made).values()}
    decisions = Judgings(store.objects).adjudications(store.get_plan(made.run).suite.suite)
    return still_open(found.values(), decisions)


def drawn_undecided(store: Store, run: str) -> tuple[Disagreement, ...]:
    """Those of every draw of a run; none where nothing was drawn."""
    draws = Judgings(store.objects).draws(run)
    return undecided(store, draws[-1]) if draws else ()  # the longest holds the others


def rates_of(store: Store, run: str) -> tuple[StratifiedRate, ...]:
    """The pass rate of each arm from people's labels, by the longest draw of which every answer is decided.

    Raises UsageError where no answers were drawn, or no draw is decided as a whole: what people labelled of their own
    choice, or first, is not a random draw.
    """
    kept, plan = Judgings(store.objects), store.get_plan(run)
    draws = kept.draws(run)
    if not draws:
        raise UsageError(
            f"no answers of run {run!r} were drawn at random, so people's labels say nothing of its other answers",
            f"draw some, and have all of them labelled: evalfarm adjudicate {run} --draw 60 --export labels.yaml",
        )
    decided = {decision.subject: decision.value for decision in kept.adjudications(plan.suite.suite)}
    answers = _drawn_answers(store, draws[-1])
    labels = {trial: decided[one.subject] for trial, one in answers.items() if one.subject in decided}
    whole = [made for made in draws if labels.keys() >= set(made.trials)]
    if not whole:
        raise _not_whole(draws[0], labels)
    return stratified_rates(whole[-1], plan, store.results(run), labels)


def _not_whole(made: Draw, labels: Mapping[int, object]) -> UsageError:
    missing = sum(trial not in labels for trial in made.trials)
    return UsageError(
        f"{missing} of the {len(made.trials)} answers drawn from run {made.run!r} are not decided; "
        "those that were decided first are no random draw",
        f"decide the rest: evalfarm adjudicate {made.run} --draw {made.each} --export labels.yaml",
    )


def _drawn_answers(store: Store, made: Draw) -> dict[int, Disagreement]:
    """What was drawn, by trial, as a reviewer is to see it."""
    plan, run = store.get_plan(made.run), made.run
    attempts = _attempts(store, made.run, made.trials)
    return {trial: to_decide(plan, store.get_trace(run, trial, attempts[trial]), {}) for trial in made.trials}


def _attempts(store: Store, run: str, trials: Iterable[int]) -> dict[int, int]:
    wanted = set(trials)
    return {result.trial.index: result.attempt for result in store.results(run) if result.trial.index in wanted}
