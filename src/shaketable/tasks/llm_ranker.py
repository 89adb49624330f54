"""The LLM ranker task: sensitivity of listwise rankers to input order, prompt wording, and injected instructions.

Tang, Zhang, Ma, Lin, Ture. Found in the middle: Permutation self-consistency improves listwise ranking in large
language models. NAACL 2024.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.attacks.injection import HARMLESS_SENTENCES
from shaketable.attacks.setup import draw_attacked_queries
from shaketable.core.documents import rank_docnos
from shaketable.core.errors import BadInput, NotApplicable, ShaketableError, check_parameter
from shaketable.core.protocols import Model
from shaketable.core.registries import RECIPES
from shaketable.core.results import Finding, Result
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.trec import read_run
from shaketable.measures.effectiveness import score_tables
from shaketable.measures.facets import PROMPT_WORDING
from shaketable.measures.input_order import (
    central_ranking,
    mean_kendall_distance,
    position_sums,
    position_weight,
)
from shaketable.measures.paired_comparison import (
    MOVEMENT_HEADINGS,
    Comparison,
    compare_paired,
    mean_movement,
    measure_movement,
)
from shaketable.measures.rank_distance import Kendall
from shaketable.measures.significance import MIN_QUERIES, bootstrap_interval
from shaketable.scoring.engine import ScoringEngine
from shaketable.tasks._attack_run import AttackRun
from shaketable.tasks._input_orders import (
    KENDALL_COLUMN,
    QUESTIONS_ALONE_COLUMN,
    OrderedRankings,
    OrdersByQuery,
    build_position_rows,
    build_query_rows,
    make_scores,
    measure_questions_alone,
    rank_in_orders,
    simulate_perfect_answers,
)
from shaketable.tasks._llm_tables import (
    BEYOND_HARMLESS_COLUMN,
    INTO_TOP_COLUMN,
    MALFORMED_WARNING_PERCENT,
    RankerTables,
    build_answer_rows,
    build_llm_findings,
    build_order_figures,
    compare_with_harmless,
    measure_intrusion,
)
from shaketable.tasks._method_findings import build_method_finding
from shaketable.tasks._prompt_changes import compare_prompts
from shaketable.tasks._query_changes import ChangedQuery

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment
    from shaketable.rankers.llm.model import AnswerTally

CONTROL_RECIPE = f"instruction(texts={HARMLESS_SENTENCES!r})"


@dataclass(frozen=True)
class LLMRanker:
    """Sensitivity of a listwise ranker to input order, prompt wording, and instructions hidden in documents.

    orders     number of input orders of each list: that of the first stage, reversed, then shuffled ones
    files      run files that give the input orders instead
    queries    queries whose lists are ranked, drawn at random; 0 is all of them
    repeats    of these, queries whose lists are ranked a second time in the same order, to measure the noise
    worded     of these, queries whose lists are ranked by the other built-in wordings of a language model; 0 is none
    injected   of these, queries in whose lists a document is attacked; 0 is none
    recipes    the attack recipes; harmless sentences are the control
    targets    documents attacked in each list: ranks from 11 on are cut into this many ranges, one document from each
    trials     texts that are tried for each target and recipe; the best counts, for harmless sentences too

    The task runs for language models. Named explicitly, it also runs for other rankers whose scores depend on the list.
    """

    orders: int = 3
    files: tuple[str, ...] = ()
    queries: int = 20
    repeats: int = 3
    worded: int = 5
    injected: int = 5
    recipes: tuple[str, ...] = ("instruction", "template_tokens")
    targets: int = 1
    trials: int = 2
    measure: str = "nDCG@10"

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_parameter("llm-ranker", self.orders >= 2, "orders", "2 or more", self.orders)
        check_parameter("llm-ranker", len(self.files) != 1, "files", "two or more, or none", self.files)
        for name, least in (("queries", 0), ("repeats", 1), ("worded", 0), ("injected", 0), ("targets", 1)):
            value: int = getattr(self, name)
            check_parameter("llm-ranker", value >= least, name, f"{least} or more", value)
        check_parameter("llm-ranker", self.trials >= 1, "trials", "1 or more", self.trials)
        for recipe in self.recipes:
            RECIPES.build(recipe)

    @staticmethod
    def applies_to(model: Model) -> bool:
        """Return True for language models: an audit without named tasks then runs this task."""
        return hasattr(model, "wordings")

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        names = [name for name in experiment.scoring_rankers if self._applies_to_ranker(experiment, name)]
        if not names:
            raise NotApplicable("no ranker is listwise: the score of each text depends only on the query and the text")
        inputs = self._make_input_orders(experiment)
        part = RankerTables()
        for name in names:
            self._measure_ranker(experiment, name, inputs, part)
        if "order" not in part.rows:
            reason = f": {experiment.engine.failures[-1].reason}" if experiment.engine.failures else ""
            raise NotApplicable(f"no list was ranked in every order{reason}")
        tables = {name: pd.DataFrame(rows) for name, rows in part.rows.items() if rows}
        return Result(
            "llm-ranker",
            "How do input order, prompt wording and injected text change a listwise ranking?",
            tables,
            tuple(build_order_figures(tables)),
            (*dict.fromkeys(part.notes), *self._build_notes(tables)),
            (*build_llm_findings(tables), *part.findings),
            failures=tuple(failure for one in part.results for failure in one.failures),
            brief=("order", "self-consistency", "wording", "answers", "injection"),
            attacked=tuple(doc for one in part.results for doc in one.attacked if doc.recipe != CONTROL_RECIPE),
        )

    def _applies_to_ranker(self, experiment: Experiment, name: str) -> bool:
        return self.applies_to(experiment.models[name]) or not experiment.get_traits(name).pointwise

    def _measure_ranker(self, experiment: Experiment, name: str, inputs: OrdersByQuery, part: RankerTables) -> None:
        """Measure one ranker, and add its rows to the tables."""
        tally: AnswerTally | None = getattr(experiment.get_ranker(name), "tally", None)
        found = rank_in_orders(experiment, name, inputs)
        if not found.outputs:
            part.notes.append(f"{name} is left out, because it ranked no list in every order.")
            return
        asked = tally.answers if tally else 0
        again, lists = self._repeat_lists(experiment, name, found)
        requests = (tally.answers - asked) / lists if tally and lists else nan
        part.add_rows("order", {"ranker": name} | self._build_order_row(experiment, name, found, again))
        part.add_rows("position", *({"ranker": name} | row for row in build_position_rows(found)))
        part.add_rows("self-consistency", {"ranker": name} | self._build_consistency_row(experiment, found, requests))
        part.add_rows("per query", *({"ranker": name} | row for row in build_query_rows(found)))
        part.add_rows("wording", *self._compare_wordings(experiment, name, found, part))
        injected = self._inject_texts(experiment, name, list(found.outputs), part)
        part.add_rows("answers", *build_answer_rows(name, tally, injected))

    def _make_input_orders(self, experiment: Experiment) -> OrdersByQuery:
        """Return the input orders of each list."""
        texts = draw_attacked_queries(experiment, self.queries)
        if self.files:
            return self._read_input_orders(experiment, texts)
        given = {
            qid: rank_docnos(experiment.candidates[qid]) for qid in texts if len(experiment.candidates.get(qid, ())) > 1
        }
        if not given:
            raise NotApplicable("no list has two documents, so there is nothing to rank")
        return {
            qid: [
                order,
                order[::-1],
                *(
                    make_item_rng(experiment.seed, "input order", qid, k).permutation(order)
                    for k in range(self.orders - 2)
                ),
            ]
            for qid, order in given.items()
        }

    def _read_input_orders(self, experiment: Experiment, texts: Mapping[str, str]) -> OrdersByQuery:
        """Return the orders of the run files over the documents that they and the collection share, up to the depth."""
        runs = [read_run(Path(file)) for file in self.files]
        orders: dict[str, list[list[str]]] = {}
        for qid in texts:
            lists = [rank_docnos(run.get(qid, {})) for run in runs]
            shared = {docno for docno in lists[0] if docno in experiment.collection.docs}.intersection(*lists)
            drawn = set(
                make_item_rng(experiment.seed, "documents of files", qid).permutation(sorted(shared))[
                    : experiment.depth
                ]
            )
            if len(drawn) > 1:
                orders[qid] = [[docno for docno in order if docno in drawn] for order in lists]
        if not orders:
            raise BadInput(
                f"no query of {experiment.collection.name} has two documents that all of {', '.join(self.files)} list"
            )
        return orders

    def _repeat_lists(self, experiment: Experiment, name: str, found: OrderedRankings) -> tuple[list[float], int]:
        """Return Kendall distances of lists that are ranked again in the same order, without the cache."""
        engine = experiment.engine
        uncached_engine = ScoringEngine(
            progress=engine.progress,
            keep_going=engine.keep_going,
            executor=engine.executor,
            failures=engine.failures,
            usage=engine.usage,
        )
        some = {qid: orders[:1] for qid, orders in list(found.inputs.items())[: self.repeats]}
        once = rank_in_orders(experiment, name, some, uncached_engine).outputs
        return [Kendall().between(found.outputs[qid][0], order) for qid, (order,) in once.items()], len(some)

    def _build_order_row(
        self, experiment: Experiment, name: str, found: OrderedRankings, again: Sequence[float]
    ) -> dict[str, Any]:
        spreads = [mean_kendall_distance(outputs) for outputs in found.outputs.values()]
        low, high = (float(end) for end in bootstrap_interval(spreads, experiment.seed))
        pairs = [(qid, measure_movement(*two)) for qid, some in found.outputs.items() for two in combinations(some, 2)]
        moved = mean_movement([qid for qid, _ in pairs], [one for _, one in pairs])
        weight = position_weight(
            (position_sums(found.inputs[q], found.outputs[q]) for q in found.outputs), experiment.seed
        )
        make_schedule = getattr(experiment.get_ranker(name), "make_schedule", None)
        alone = simulate_perfect_answers(make_schedule, found) if make_schedule else None
        return {
            "queries": len(found.outputs),
            "orders": len(next(iter(found.outputs.values()))),
            KENDALL_COLUMN: float(np.mean(spreads)),
            "low": low,
            "high": high,
            "when repeated": float(np.mean(again)) if again else nan,
            MOVEMENT_HEADINGS["top"]: moved[MOVEMENT_HEADINGS["top"]],
            MOVEMENT_HEADINGS["overlap"]: moved[MOVEMENT_HEADINGS["overlap"]],
            "position weight": weight.value,
            "weight low": weight.low,
            "weight high": weight.high,
            **(measure_questions_alone(alone) if alone else {}),
        }

    def _build_consistency_row(self, experiment: Experiment, found: OrderedRankings, requests: float) -> dict[str, Any]:
        """Return the effectiveness of the central ranking over all orders, and its cost."""
        count = len(next(iter(found.outputs.values())))
        others = [
            Kendall().between(outputs[k], central_ranking([*outputs[:k], *outputs[k + 1 :]]))
            for outputs in found.outputs.values()
            for k in range(count)
        ]
        row: dict[str, Any] = {
            "orders": count,
            "requests for a list": requests,
            "requests for the centre": requests * count,
            "to another order": float(np.mean([mean_kendall_distance(outputs) for outputs in found.outputs.values()])),
            "to the centre of the others": float(np.mean(others)) if count > 2 else nan,
        }
        centres = {qid: central_ranking(outputs) for qid, outputs in found.outputs.items()}
        if change := self._compare_effectiveness(experiment, found, centres):
            row |= {f"one order {self.measure}": change.before, f"centre {self.measure}": change.after}
            row |= {"change": change.change, "low": change.low, "high": change.high, "p": change.p}
        return row

    def _compare_effectiveness(
        self, experiment: Experiment, found: OrderedRankings, lists: Mapping[str, Sequence[str]]
    ) -> Comparison | None:
        """Compare lists with the mean over the ranker's lists of all orders; None without judgements."""
        judged = {qid: experiment.qrels[qid] for qid in lists if qid in experiment.qrels}
        if not judged:
            return None
        count = len(next(iter(found.outputs.values())))
        runs = {str(k): {qid: make_scores(found.outputs[qid][k]) for qid in judged} for k in range(count)}
        (table,) = score_tables(
            [self.measure], judged, runs | {"new": {qid: make_scores(lists[qid]) for qid in judged}}
        )
        one = table.values[:count].mean(axis=0)
        return compare_paired(
            dict(zip(table.topics, one.tolist(), strict=True)),
            dict(zip(table.topics, table.row("new").tolist(), strict=True)),
            experiment.seed,
        )

    def _compare_wordings(
        self, experiment: Experiment, name: str, found: OrderedRankings, part: RankerTables
    ) -> Iterator[dict[str, Any]]:
        """Yield comparisons of other prompt wordings with the ranker's own, with input in the first order."""
        if not self.worded or not self.applies_to(experiment.models[name]):
            return
        model: Any = experiment.models[name]
        own = {qid: outputs[0] for qid, outputs in list(found.outputs.items())[: self.worded]}
        some = {qid: found.inputs[qid][:1] for qid in own}
        for wording, other in model.wordings().items():
            called = f"{name} ({wording})"
            variant = replace(experiment, models={called: other})
            try:
                reworded = rank_in_orders(variant, called, some)
            except ShaketableError as error:
                part.notes.append(f"{called} is left out: {error}.")
                continue
            if not reworded.outputs:
                continue
            moves = [measure_movement(own[qid], order) for qid, (order,) in reworded.outputs.items()]
            moved = mean_movement(list(reworded.outputs), moves)
            row = {"ranker": name, "wording": wording, "queries": len(moves)}
            row |= {
                heading: moved[heading]
                for heading in (KENDALL_COLUMN, MOVEMENT_HEADINGS["top"], MOVEMENT_HEADINGS["overlap"])
            }
            first = OrderedRankings(some, {qid: [own[qid]] for qid in reworded.outputs})
            others = {qid: order for qid, (order,) in reworded.outputs.items()}
            finding = self._build_wording_finding(experiment, name, wording, own, others)
            part.findings += [finding] if finding else []
            if change := self._compare_effectiveness(experiment, first, others):
                row |= {f"own {self.measure}": change.before, self.measure: change.after, "p": change.p}
            yield row
            part.add_rows("answers", *build_answer_rows(called, getattr(variant.get_ranker(called), "tally", None)))

    def _build_wording_finding(
        self,
        experiment: Experiment,
        name: str,
        wording: str,
        own: Mapping[str, Sequence[str]],
        others: Mapping[str, Sequence[str]],
    ) -> Finding | None:
        """Return the change by another wording of the prompt."""
        runs = [{qid: make_scores(lists[qid]) for qid in others} for lists in (own, others)]
        queries = [ChangedQuery(qid, experiment.collection.queries[qid].text) for qid in others]
        changed_run = compare_prompts(experiment, queries, runs[0], runs[1], self.measure)
        test = f"the {wording} prompt"
        return build_method_finding(
            experiment, name, test, changed_run, range(len(queries)), self.measure, PROMPT_WORDING
        )

    def _inject_texts(
        self, experiment: Experiment, name: str, qids: Sequence[str], part: RankerTables
    ) -> AnswerTally | None:
        """Measure the effect of instructions and prompt marks in documents, and of harmless sentences instead.

        Return the answer tally of a language model.
        """
        if not self.injected or not self.recipes:
            return None
        queries = {qid: experiment.collection.queries[qid] for qid in qids[: self.injected]}
        table = replace(
            experiment.with_collection(replace(experiment.collection, queries=queries, splits={}, source="")),
            models={name: experiment.models[name]},
            limit=None,
        )
        recipes = dict.fromkeys((*self.recipes, CONTROL_RECIPE))
        budget = self.trials * self.targets * len(queries)
        attack = AttackRun(
            tuple(recipes),
            targets=self.targets,
            queries=0,
            max_trials=budget,
            any_grade=not experiment.qrels,
            detectors=(),
        )
        try:
            result = attack.run(table)
        except NotApplicable as error:
            part.notes.append(f"{name}: the injection test is left out ({error}).")
            return None
        part.results.append(result)
        part.notes += [note for note in result.notes if note.startswith((f"{name}:", f"{name} gives"))]
        targets = result.tables["targets"]
        for recipe in recipes:
            mine = targets[targets["recipe"] == recipe]
            if len(mine):
                called = "harmless sentences" if recipe == CONTROL_RECIPE else recipe
                row = {"ranker": name, "recipe": called} | measure_intrusion(mine, experiment.seed)
                against = targets[targets["recipe"] == CONTROL_RECIPE]
                part.add_rows(
                    "injection",
                    row | (compare_with_harmless(mine, against, experiment.seed) if recipe != CONTROL_RECIPE else {}),
                )
        return getattr(table.get_ranker(name), "tally", None)

    def _build_notes(self, tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
        count = int(tables["order"]["queries"].max())
        how = (
            f"those of {', '.join(self.files)}" if self.files else "as the first stage has them, reversed, and shuffled"
        )
        yield (
            f"For the table 'order', the ranker was shown the same lists in several input orders ({how}). "
            f"'{KENDALL_COLUMN}' is the mean share of pairs of documents that come out in another order, with its "
            "interval over queries; 'when repeated' is the same for two requests with the same input order, which is "
            "noise. 'position weight' is the number of ranks that a document gains for each rank that it is shown "
            "earlier: 0 for a ranker that ignores the input order, 1 for one that returns its input."
        )
        if QUESTIONS_ALONE_COLUMN in tables["order"]:
            yield (
                f"'{QUESTIONS_ALONE_COLUMN}' and 'weight of these' are what the distance and the weight would be if "
                "each question were answered perfectly, by the central ranking of the list. A window that slides once "
                "over a list sorts its top but not its bottom, so some of the input order remains even with "
                "perfect answers."
            )
        yield (
            "The table 'position' has the mean output rank of documents by their input rank; 'shift' is the difference "
            "from the mean output rank of the same document over all input orders. It is 0 everywhere for a ranker "
            "that ignores the input order."
        )
        yield (
            "In the table 'self-consistency' the centre is the ranking on which all input orders agree best. 'to "
            "another order' and 'to the centre of the others' are Kendall distances from the list of one input order: "
            "if the second is smaller, the centre is more stable than one list. The numbers of requests are means over "
            "the lists that were requested in this run."
        )
        if "wording" in tables:
            yield "The table 'wording' compares other built-in wordings of the prompt with the ranker's own wording."
        if "answers" in tables:
            yield (
                "The table 'answers' counts the answers of this run, without cached lists of earlier runs. A malformed "
                "answer does not have the requested form. It is repaired if it is unambiguous (a passage named twice "
                "counts once, and missing passages come last); otherwise it is unreadable, and the input order stays."
            )
            for row in tables["answers"].to_dict("records"):
                if row["malformed %"] > MALFORMED_WARNING_PERCENT:
                    yield (
                        f"{row['ranker']}: {row['malformed %']:.0f} % of the answers were malformed. Passages that "
                        "such an answer leaves out keep the input order, so its order sensitivity and its position "
                        "weight are partly an effect of the repair, and an unchanged list does not show that the "
                        "ranker is stable."
                    )
        if "injection" in tables:
            yield (
                f"For the table 'injection', a text was put into documents from rank 11 on. Up to {self.trials} texts "
                "were tried for each document (more, for all recipes alike, if lists have too few documents to "
                f"attack), and the best rank counts. '{INTO_TOP_COLUMN}' is the percentage of documents "
                "that end among the first ten. Harmless sentences were tried as often; "
                f"'{BEYOND_HARMLESS_COLUMN}' is the difference from them, in per cent of the documents."
            )
        if count < MIN_QUERIES:
            yield f"There are fewer than {MIN_QUERIES} queries, so read the intervals and not the means."
