"""The prompt-wording task: the prefixes of an encoder missing, swapped or reworded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from shaketable.core.documents import rank_docnos
from shaketable.core.errors import NotApplicable, ShaketableError, check_ranges
from shaketable.core.protocols import Model
from shaketable.core.results import Example, Figure, Finding, Result
from shaketable.experiment.sampling import shuffle_queries
from shaketable.measures.facets import PROMPT_WORDING
from shaketable.measures.paired_comparison import MOVEMENT_EXPLANATION, compare_paired, mean_movement, query_means
from shaketable.tasks._method_findings import build_method_finding, find_largest_loss
from shaketable.tasks._prompt_changes import compare_prompts
from shaketable.tasks._query_changes import ChangedQuery, ChangedQueryRun

if TYPE_CHECKING:
    from shaketable.experiment import Experiment


@dataclass(frozen=True)
class PromptWording:
    """Sensitivity of an encoder to its prompts: the prefixes of queries and passages missing, swapped or reworded.

    queries    number of queries, drawn at random; 0 is all of them
    documents  documents of each list: the first of the ranker's own list

    The task runs for encoders with a prefix, such as st(name='...', query_prefix='query: '). Language models have the
    task llm-ranker.
    """

    measure: str = "nDCG@10"
    queries: int = 50
    documents: int = 30

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_ranges("prompt_wording", self, queries=(0, 1_000_000), documents=(2, 1_000_000))

    @staticmethod
    def applies_to(model: Model) -> bool:
        """Return True for models that may have prompts: an audit without named tasks then runs this task."""
        return hasattr(model, "reword_prompts")

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        rows: list[dict[str, Any]] = []
        findings: list[Finding] = []
        examples: list[Example] = []
        notes: list[str] = []
        for name in experiment.scoring_rankers:
            model: Any = experiment.models.get(name)
            for change, other in (model.reword_prompts() if self.applies_to(model) else {}).items():
                try:
                    changed_run = self._compare_lists(experiment, name, change, other)
                except ShaketableError as error:
                    notes.append(f"{name} with a {change} is left out: {error}.")
                    continue
                rows.append({"ranker": name, "change": change} | self._build_row(experiment, other, changed_run))
                every = range(len(changed_run.changed_queries))
                found = build_method_finding(experiment, name, change, changed_run, every, self.measure, PROMPT_WORDING)
                findings += [found] if found else []
                worst = find_largest_loss(name, change, changed_run, every)
                examples += [worst] if worst else []
        if not rows:
            reason = f" ({notes[0].removesuffix('.')})" if notes else ""
            raise NotApplicable(
                f"no ranker has a prefix of queries or passages that can be changed{reason}; write it in the spec of "
                "an encoder, as in st(name='NAME', query_prefix='query: ')"
            )
        return Result(
            "prompt-wording",
            "What do missing, swapped or reworded prefixes change?",
            {"prompt wording": pd.DataFrame(rows)},
            tuple(_build_figures(bool(experiment.qrels))),
            (*notes, *self._build_notes(bool(experiment.qrels))),
            tuple(findings),
            tuple(examples),
        )

    def _compare_lists(self, experiment: Experiment, name: str, change: str, other: Model) -> ChangedQueryRun:
        """Rank the first documents of each list again with the ranker itself and with other prefixes."""
        own, called = experiment.get_run(name), f"{name} ({change})"
        sample = experiment.sample_queries(PROMPT_WORDING, change)
        drawn = set(shuffle_queries((qid for qid in sample if qid in own), experiment.seed)[: self.queries or None])
        texts = {qid: text for qid, text in sample.items() if qid in drawn}
        first = {qid: {docno: own[qid][docno] for docno in rank_docnos(own[qid])[: self.documents]} for qid in texts}
        before = experiment.rerank(name, texts, first)
        after = replace(experiment, models={called: other}).rerank(called, texts, first)
        both = [qid for qid in texts if qid in before and qid in after]
        if not both:
            raise NotApplicable("no list was ranked")
        prefix = str(getattr(other, "query_prefix", ""))
        changed = [ChangedQuery(qid, prefix + texts[qid], texts[qid]) for qid in both]
        return compare_prompts(experiment, changed, before, after, self.measure)

    def _build_row(self, experiment: Experiment, other: Any, changed_run: ChangedQueryRun) -> dict[str, Any]:
        """Return the new prefixes, the values before and after with their test, and the movement of the lists."""
        qids = [one.qid for one in changed_run.changed_queries]
        row: dict[str, Any] = {
            "query prefix": repr(getattr(other, "query_prefix", "")),
            "passage prefix": repr(getattr(other, "passage_prefix", "")),
            "queries": len(qids),
        }
        if changed_run.values_before is not None and changed_run.values_after is not None:
            before, after = (query_means(qids, v) for v in (changed_run.values_before, changed_run.values_after))
            compared = compare_paired(before, after, experiment.seed, experiment.weights)
            row |= {"before": compared.before, "after": compared.after, "drop %": compared.drop, "p": compared.p}
        return row | mean_movement(qids, changed_run.movements, experiment.weights)

    def _build_notes(self, judged: bool) -> Iterator[str]:
        yield (
            f"Each encoder ranks the first {self.documents} documents of its own lists again with other prefixes. A "
            "'missing prefix' leaves both out, 'swapped prefixes' puts that of queries before passages and that of "
            "passages before queries, and a 'reworded prefix' uses other words of the same meaning."
        )
        if judged:
            yield (
                f"'before' and 'after' are {self.measure} with its own and with the other prefixes; 'drop %' is the "
                "difference in per cent of 'before', and 'p' is by a paired t-test, not corrected."
            )
        yield MOVEMENT_EXPLANATION


def _build_figures(judged: bool) -> Iterator[Figure]:
    title = "Change by other prefixes, in per cent of the mean" if judged else "Share of the first ten that stays"
    yield Figure("bars", "prompt wording", title, x="ranker", y="drop %" if judged else "overlap@10", color="change")
