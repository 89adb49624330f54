"""The competition task: the stability of rankings while authors rewrite their documents to rank first.

Wu, Zhang, Guo, Fan, Cheng. Are neural ranking models robust? TOIS 2022, sections 5.2, 5.3 and 5.5; the comparison of
consecutive rounds is Goren, Kurland, Tennenholtz, Raiber. Ranking robustness under adversarial document manipulations.
SIGIR 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from shaketable.core.errors import NotApplicable
from shaketable.core.results import Result
from shaketable.datasets.competition import SAMPLE_NAME, read_competition
from shaketable.measures.paired_comparison import query_means
from shaketable.tasks._competition_rounds import CHANGE_MEASURES, list_round_changes, measure_rounds, score_rounds
from shaketable.tasks._competition_tables import (
    build_competition_figures,
    build_competition_findings,
    build_competition_notes,
    build_competition_row,
    build_round_table,
    compare_rankers,
    measure_rewrites,
    melt_measures,
    select_winners,
    summarize_authors,
)

if TYPE_CHECKING:
    from shaketable.experiment import Experiment


@dataclass(frozen=True)
class RankCompetition:
    """Stability of rankings while authors rewrite documents to rank first: top change (TC), Kendall distance (KT).

    `data` is a folder with rounds of documents by named authors (see `datasets.competition`), or "sample".
    Without it, an audit of the sample uses the bundled competition, and any other audit skips the task. The same
    ranker, opened on the audited collection, ranks the documents of a query in every round. The task compares the
    authors' order with that of the next round.

    data  the folder of the competition, or sample
    """

    data: str = ""

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        competition = read_competition(self._choose_source(experiment))
        qids = [qid for qid in competition.queries if len(competition.get_contested_rounds(qid)) > 1][
            : experiment.limit
        ]
        ranked = {name: score_rounds(experiment, name, competition, qids) for name in experiment.scoring_rankers}
        steps = {
            name: [step for qid in qids for step in list_round_changes(competition, qid, lists)]
            for name, lists in ranked.items()
        }
        judged = measure_rounds(competition, qids, ranked)
        names = [*CHANGE_MEASURES, *judged]
        values = {
            name: {
                key: query_means([s.qid for s in own], [getattr(s, key.lower()) for s in own])
                for key in CHANGE_MEASURES
            }
            | {key: by_ranker[name].means_by_query for key, by_ranker in judged.items()}
            for name, own in steps.items()
        }
        summary = pd.DataFrame(
            [build_competition_row(name, values[name], len(steps[name]), experiment.seed) for name in ranked]
        )
        rounds = build_round_table(steps, judged, experiment.seed)
        orders = compare_rankers(values, names, experiment.seed)
        tables = {
            "competition": summary,
            "pairs of rankers": orders,
            "rewritten documents": measure_rewrites(steps, competition, experiment.seed),
            "by round": rounds,
            "authors": summarize_authors(ranked, competition),
            "TC and KT": melt_measures(summary, list(CHANGE_MEASURES), "share"),
            "MAP and nDCG@5": melt_measures(summary, list(judged), "mean"),
            "per query": pd.DataFrame([{"ranker": n} | step.table_row for n, own in steps.items() for step in own]),
        }
        several = len(ranked) > 1
        return Result(
            "competition",
            "How stable is the ranking while authors rewrite their documents to rank first?",
            {name: frame for name, frame in tables.items() if len(frame) and (several or name != "pairs of rankers")},
            build_competition_figures(rounds, bool(judged)),
            tuple(build_competition_notes(experiment, competition, qids, steps, judged, several)),
            tuple(build_competition_findings(summary, orders, names)),
            tuple(example for name in ranked for example in select_winners(name, steps[name], competition)),
            brief=("competition", "pairs of rankers", "rewritten documents"),
        )

    def _choose_source(self, experiment: Experiment) -> str:
        if self.data:
            return self.data
        if experiment.collection.source.partition("?")[0] == SAMPLE_NAME:
            return SAMPLE_NAME
        raise NotApplicable(
            "it needs the documents of a competition, written in rounds; name their folder, as in "
            "--task \"competition(data='my-folder')\", or use those of the sample, data='sample'"
        )
