"""A comparison of two rankers by a click log alone, which also says when they cannot be compared.

Two questions are answered apart. The counterfactual value says which one *ranks* better, as far as the position-based
model holds and the propensities are known. The likelihood of the log's clicks says which one *predicts clicks* better,
which needs neither, but does not prove a better ranking: a model may predict clicks well because it knows the bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from ultr import checks
from ultr.arrays import Doubles
from ultr.bias import BY_SWAPS, EM, ResampledPropensities
from ultr.counted import and_list
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError
from ultr.evaluation.assumption import Assumption
from ultr.evaluation.by_placement import answer_by_placement, placement_value
from ultr.evaluation.counterfactual import IPS, UTILITIES, WEIGHTINGS, CounterfactualValue, Valuation
from ultr.evaluation.evidence import Candidates, Evidence, check_codes
from ultr.evaluation.halves import Halves
from ultr.evaluation.held_out import QueryLikelihoods
from ultr.evaluation.judged import RankerLike
from ultr.evaluation.placement import Placement, placement_of, ranks_of, scores_of
from ultr.evaluation.raw_clicks import beside_raw_clicks
from ultr.evaluation.trial import ALIKE, CANNOT_TELL, Answer, Certainty, Trial, Valued
from ultr.evaluation.unseen_part import UnseenPart, unseen_part
from ultr.evaluation.worth import Worth, check_signals
from ultr.methods.value_option import as_sum, check_weights
from ultr.metrics.intervals import Interval
from ultr.pages import Page, Section, Table, Verdict, notebook, sentences

AS_SHOWN, RAW_CLICKS = "the lists as shown", "raw clicks"
QUESTIONS = {
    "value": "ranks better than {a}",
    "value_against_shown": "ranks better than the lists as shown",
    "value_against_raw_clicks": "ranks better than raw clicks (rates on other pages)",
    "likelihood": "predicts clicks and skips better than {a}",
    "list_likelihood": "predicts which of a list is clicked better than {a}",
}
"""The claim that each answer of a comparison is about, the second ranker being the subject."""
EVIDENCE = ("clicks", "effective_clicks", "clipped", "unsupported")
"""Fields of a value that say how much evidence it rests on."""
_SAME = "the same"
_VERDICTS = {"yes": Verdict.GOOD, "no": Verdict.BAD, CANNOT_TELL: Verdict.UNKNOWN, _SAME: Verdict.CAREFUL}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Answers on whether the second of two rankers is better than the first, and than what the log has already."""

    value: Answer
    """By counterfactual value: the second ranker against the first."""
    value_against_shown: Answer
    """The second ranker against the lists as they were shown."""
    value_against_raw_clicks: Answer
    """The second ranker against ordering each query's documents by their click rate on other pages of the log."""
    likelihood: Answer
    """By the likelihood of each shown document's click or skip: the second ranker against the first."""
    list_likelihood: Answer
    """By the likelihood of each click among its list: the second ranker against the first."""
    values: dict[str, CounterfactualValue]
    """By name: both rankers and the lists as shown; empty without propensities."""
    propensities: Doubles | None
    """[positions], those that the values are built on; None where they are not identified."""
    assumption: Assumption
    """The test of whether one number for each position is enough for the log."""
    unseen: UnseenPart
    """The part of the log that the rankers were compared on, with what must be said about it."""
    names: tuple[str, str]
    interval_name: str = "95% interval"
    explored: int = 0
    """Placements by exploration that the propensities rest on."""
    value_of: str = ""
    """The value that rankings were compared by, such as `1 click + 20 purchase`; empty if by clicks."""
    value_by_placement: Answer | None = None
    """The second ranker against the first by placements that exploration made; None if it logged none."""

    @property
    def exploration(self) -> str:
        """A sentence on where the propensities come from, if exploration logged its own; else nothing."""
        if not self.explored:
            return ""
        return (
            f"Propensities come from {self.explored:,} placements by exploration, weighted by their logged "
            "probabilities, and not from the places that rankings gave to documents."
        )

    @property
    def counted(self) -> str:
        """What rankings were compared by, in words."""
        return f"value ({self.value_of})" if self.value_of else "clicks"

    @property
    def worth(self) -> str:
        """A sentence on the value that rankings were compared by, if it is not clicks; else nothing."""
        return self.value_of and (
            f"Rankings are compared by {self.counted}, which is assumed to follow a click wherever it was; raw clicks "
            "are rates of it, and predictions are of clicks."
        )

    @property
    def by_value(self) -> list[Answer]:
        """The answers on who ranks better that rest on propensities."""
        answers = (self.value, self.value_against_shown, self.value_against_raw_clicks)
        return [answer for answer in answers if answer.difference is not None and answer.verdict != ALIKE]

    @property
    def assumed(self) -> str:
        """Words on whether one number for each position is enough for the log, and what answers make of it."""
        return _assumed([self])

    @property
    def _plain(self) -> bool:
        """True if the value of each ranker, by one number for each position, agrees with the answers."""
        return not any(answer.adjusted for answer in self.by_value)

    @property
    def answers(self) -> dict[str, Answer]:
        """The answers by field."""
        return {field: getattr(self, field) for field in QUESTIONS}

    def word(self, answer: Answer) -> str:
        """The answer for the second ranker: `yes`, `no`, `the same` or `cannot tell`."""
        if answer.verdict == ALIKE:
            return _SAME
        return CANNOT_TELL if answer.winner is None else "yes" if answer.winner == self.names[1] else "no"

    def section(self) -> Section:
        """The comparison in words, with the values and the answers as tables."""
        first, second = self.names
        word = self.word(self.value)
        advice = [*self.unseen.remarks, self.assumed, *filter(None, [self.worth, self.exploration])]
        if (placed := self.value_by_placement) is not None:
            said = f"{placed.verdict}; {placed.reason}"
            advice.append(f"By placements of exploration alone, without propensities: {said}.")
        for field, answer in self.answers.items():
            # Its interval may leave 0 out, and is nothing to go by all the same.
            if not answer.supported and answer.reason != self.value.reason:
                asked = QUESTIONS[field].format(a=first)
                advice.append(f"Whether {second} {asked}: {answer.verdict}, {answer.reason}.")
        if not self.values and word != _SAME:
            advice.append("Give --propensities, or a log with swaps, to compare the rankings themselves.")
        return Section(
            f"Does {second} rank better than {first}?",
            f"{self.value.verdict}: {self.value.reason}\n\nCompared on {self.unseen.name}.",
            _VERDICTS[word],
            "\n\n".join(advice),
            tables=[*([self._values_table()] if self.values else []), self._answers_table()],
            numbers=self.as_json(),
            name="comparison",
            word=word,
        )

    def parts(self) -> list[Section]:
        """The answers with their reasons; those with one reason stand together."""
        by_reason: dict[tuple[str, str], list[str]] = {}
        for field, answer in self.answers.items():
            asked = QUESTIONS[field].format(a=self.names[0])
            by_reason.setdefault((self.word(answer), answer.reason), []).append(asked)
        return [
            Section(f"{self.names[1]} {', '.join(asked)}", sentences([reason]), _VERDICTS[word], word=word)
            for (word, reason), asked in by_reason.items()
        ]

    def _repr_html_(self) -> str | None:
        return notebook(Page("", "", [self.section()]))

    def as_json(self) -> dict[str, Any]:
        """Every answer and every number."""
        placed = self.value_by_placement
        return {
            "compared_on": self.unseen.name,
            "value_of": self.value_of or "clicks",
            "warnings": self.unseen.warnings,
            "notes": self.unseen.notes,
            "propensities": None if self.propensities is None else self.propensities.tolist(),
            "placements_by_exploration": self.explored,
            "value_by_placement": placed and asdict(placed),
            "one_number_for_each_position": vars(self.assumption) | {"sentence": self.assumed},
            "values": {
                name: (vars(value.interval()) if self._plain else {})
                | {each: getattr(value, each) for each in EVIDENCE}
                for name, value in self.values.items()
            },
            "answers": {field: asdict(answer) for field, answer in self.answers.items()},
        }

    def _values_table(self) -> Table:
        rows = [
            {
                "ranker": name,
                **({"value": value.interval().text()} if self._plain else {}),
                "effective clicks": f"{value.effective_clicks:,.0f}",
                "clipped": f"{value.clipped:.1%}",
                "never shown": f"{value.unsupported:.1%}",
            }
            for name, value in self.values.items()
        ]
        what = "value, 95 % intervals with the propensities taken for known"
        return Table(what if self._plain else "evidence of each value", rows)

    def _answers_table(self) -> Table:
        rows = [
            {
                f"{self.names[1]} ...": QUESTIONS[field].format(a=self.names[0]),
                "answer": self.word(answer),
                **signed_texts(answer.difference),
            }
            for field, answer in self.answers.items()
        ]
        return Table(f"answers, {self.interval_name.replace('% interval', ' % intervals')}", rows)


def ranked(found: Sequence[Comparison]) -> Section:
    """Several rankers, each compared with the same one: a row for each, the best first."""
    base = found[0].names[0]
    order = sorted(found, key=lambda each: np.inf if each.value.difference is None else -each.value.difference.mean)
    rows = [
        {
            "ranker": each.names[1],
            f"better than {base}": each.word(each.value),
            **signed_texts(each.value.difference),
            "predicts clicks better": each.word(each.list_likelihood),
            "better than as shown": each.word(each.value_against_shown),
        }
        for each in order
    ]
    advice = [*found[0].unseen.remarks, _assumed(found), *filter(None, [found[0].worth])]
    reasons: dict[str, list[str]] = {}
    for each in order:
        if each.value.winner is None:
            reasons.setdefault(f"{each.value.verdict}: {each.value.reason}", []).append(each.names[1])
    advice += [f"{', '.join(names)} and {base}: {reason}." for reason, names in reasons.items()]
    if len(found) > 1:
        advice.append(
            f"Each interval holds for itself: with {len(found)} rankers, one may be beyond chance by chance, and the "
            "best looks better than it is."
        )
    said = [
        f"{and_list(names)} {'ranks' if len(names) == 1 else 'rank'} {how} than {base}"
        for word, how in (("yes", "better"), ("no", "worse"))
        if (names := [each.names[1] for each in order if each.word(each.value) == word])
    ] or [f"none is told to rank better or worse than {base}"]
    if len(order) > 1:
        said.append("they were not compared with each other")
    return Section(
        f"Which ranks better than {base}?",
        f"{'; '.join(said)}.\n\nCompared on {found[0].unseen.name}.",
        advice="\n\n".join(advice),
        tables=[Table(f"against {base}, {found[0].interval_name.replace('% interval', ' % intervals')}", rows)],
        numbers={each.names[1]: each.as_json() for each in order},
        name="comparison",
    )


def _assumed(found: Sequence[Comparison]) -> str:
    """The same sentence for several comparisons on one log."""
    answers = [answer for each in found for answer in each.by_value]
    adjusted = [answer.adjusted for answer in answers]
    return found[0].assumption.beside(adjusted=bool(adjusted) and all(adjusted), differing=any(adjusted))


def signed_texts(difference: Interval | None) -> dict[str, str]:
    """A difference and the ends of its interval, as cells of a table."""
    numbers = (None,) * 3 if difference is None else (difference.mean, difference.low, difference.high)
    cells = ("" if number is None or math.isnan(number) else f"{number:+.4f}" for number in numbers)
    return dict(zip(("by", "low", "high"), cells, strict=True))


def compare(
    a: RankerLike,
    b: RankerLike,
    log: ClickLog,
    *,
    propensities: Sequence[float] | Doubles | None = None,
    estimator: str = EM,
    swaps: ClickLog | None = None,
    weighting: str = IPS,
    utility: str = "clicks",
    relevance: Doubles | None = None,
    candidates: Candidates | None = None,
    value: Mapping[str, float] | None = None,
    names: tuple[str, str] = ("A", "B"),
    assumption: Assumption | None = None,
    unseen: UnseenPart | None = None,
    level: float = 0.95,
    looks: int = 1,
    seed: int = 0,
) -> Comparison:
    """Answer whether ranker `b` is better than `a` and than raw clicks, by the part of `log` unseen by both.

    A part is unseen by a ranker that was not trained on it.

    Where no such part is known, the whole log is taken, and a `SeenDataWarning` says why.
    Without `propensities` they are estimated from the swaps of the log, and intervals follow how unsure they are; given
    ones are taken for known. Swaps that exploration made and logged count in the place of others. If `log` is a part of
    a larger log, with the same query ids, its swaps help as `swaps`.
    Where documents that both rank high have other propensities than those that both rank low, trust bias is taken off,
    or with few clicks intervals reach from what the one say to what the other say.

    Intervals are bootstrapped over queries. Who looks again and again while the log grows, and stops at a winner, says
    how many `looks` there are to be in all.

    With a `value`, weights of the log's signals such as `{"click": 1, "purchase": 20}`, rankings are compared by the
    value that they would bring in the place of clicks. What follows a click is assumed not to depend on the position;
    bias is learned from clicks, and likelihoods are those of clicks.

    `assumption` and `unseen` are for those who have tested the log and looked for its unseen part already. `weighting`,
    `utility`, `relevance` and `candidates` are those of `counterfactual_value`.
    """
    if not isinstance(log, ClickLog):
        raise OptionError(f"rankers are compared by a ClickLog, got {type(log).__name__}; make one with ultr.read_log")
    checks.one_of("estimator", estimator, BY_SWAPS)
    checks.integer("looks", looks, at_least=1)
    checks.one_of("weighting", weighting, WEIGHTINGS)
    checks.one_of("utility", utility, UTILITIES)
    if value is not None:
        check_weights(value)
        check_signals(log, value)
    if swaps is not None and not np.array_equal(swaps.query_ids, log.query_ids):
        raise DataError("swaps must come from a log with the query ids of the log that rankers are compared on")
    if names[0] == names[1]:
        raise OptionError(f"the two rankers need different names, got {names[0]!r} twice")
    swaps = log if swaps is None else swaps
    rankers = dict(zip(names, (a, b), strict=True))
    unseen = unseen_part(rankers, log).warn() if unseen is None else unseen
    log = unseen.log
    if not log.clicks.any():
        raise DataError("the log has no click, so there is nothing to compare rankers by")
    for ranker in rankers.values():
        known_names = tuple(getattr(getattr(ranker, "ranker_", ranker), "feature_names", log.feature_names))
        if known_names != tuple(log.feature_names):
            raise DataError(
                f"a ranker knows {len(known_names)} features, the log has {len(log.feature_names)} or other names for "
                "them; compare on a log with the features that both were trained for"
            )
        check_codes(ranker, log)
    if assumption is None:
        assumption = Assumption.of_log(swaps, seed=seed)
    judge, value_of = Certainty(level, looks), "" if value is None else as_sum(value)
    likelihood, list_likelihood = _likelihood_answers(rankers, log, judge, seed=seed)
    compared = partial(
        Comparison,
        likelihood=likelihood,
        list_likelihood=list_likelihood,
        assumption=assumption,
        unseen=unseen,
        names=names,
        interval_name=judge.interval_name,
        value_of=value_of,
    )
    evidence = Evidence.of(log, candidates, value=value)
    scores = {name: scores_of(ranker, evidence) for name, ranker in rankers.items()}
    orders = {name: placement_of(each, evidence) for name, each in scores.items()}
    first, second = names
    same = orders[first].same_as(orders[second])
    if candidates is not None:
        # Pages may be too short to show in what two orders differ.
        same = all(map(np.array_equal, *(ranks_of(scores[name], evidence) for name in names)))
    why = f"{first} and {second} put the documents of all {len(evidence.query_numbers):,} queries in the same order"
    alike = Answer(ALIKE, why, difference=Interval(0.0, 0.0, 0.0)) if same else None
    try:
        known = None if propensities is not None else ResampledPropensities.of_log(swaps, estimator, seed=seed)
    except DataError as error:
        unknown = Answer(CANNOT_TELL, f"the propensities are not identified: {error}")
        return compared(alike or unknown, unknown, unknown, values={}, propensities=None)
    theta = np.asarray(propensities, dtype=np.float64) if known is None else known.estimate
    valuation = Valuation(theta, weighting, utility, relevance=relevance)
    halves = Halves.of(rankers.values(), swaps, estimator, seed=seed)
    counted = f"value ({value_of})" if value_of else "clicks"
    trial = Trial(log, valuation, known, halves, judge, seed, counted)
    rankings: dict[str, Valued] = {name: [(order, evidence)] for name, order in orders.items()}
    rankings[AS_SHOWN] = [(Placement.as_shown(evidence), evidence)]
    by_placement = None
    if log.placements is not None and log.placements.explored.any() and candidates is None:
        amounts = None if value is None else Worth.of_rows(log, value).totals
        placed = {name: placement_value(scores[name], evidence, amounts) for name in names}
        by_placement = answer_by_placement(
            (second, placed[second]), (first, placed[first]), judge, seed=seed, counted=counted
        )
    try:
        beside = beside_raw_clicks(scores[second], evidence, log, candidates, value, seed=seed)
        against_raw = trial.answer(dict(zip((second, RAW_CLICKS), beside, strict=True)), second, RAW_CLICKS)
    except DataError as error:
        against_raw = Answer(CANNOT_TELL, f"the pages cannot be halved to rank by raw clicks: {error}")
    return compared(
        alike or trial.answer(rankings, second, first),
        trial.answer(rankings, second, AS_SHOWN),
        against_raw,
        values={name: valuation.of(*placed[0]) for name, placed in rankings.items()},
        propensities=theta,
        explored=0 if known is None else known.explored,
        value_by_placement=by_placement,
    )


def _likelihood_answers(
    rankers: Mapping[str, Any], log: ClickLog, judge: Certainty, *, seed: int
) -> tuple[Answer, Answer]:
    """Answers on who predicts the log's clicks better: clicks and skips one by one, and clicks among their lists."""
    fits = {}
    for name, ranker in rankers.items():
        if not hasattr(ranker, "click_shares"):
            return (Answer(CANNOT_TELL, f"{name} does not predict clicks"),) * 2
        try:
            fits[name] = QueryLikelihoods.of(ranker, log)
        except (OptionError, DataError) as error:
            return (Answer(CANNOT_TELL, f"{name} does not predict these clicks: {error}"),) * 2
    (first, theirs), (second, ours) = fits.items()
    what = "the difference in log-likelihood of a click"
    by_document = judge.widened(ours.against(theirs, level=judge.level, seed=seed))
    by_list = judge.widened(ours.against_in_lists(theirs, level=judge.level, seed=seed))
    return (
        judge.answer(by_document, second, first, what=f"{what} or skip"),
        judge.answer(by_list, second, first, what=f"{what} among its list"),
    )
