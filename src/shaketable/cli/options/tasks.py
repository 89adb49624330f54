"""Flags for tasks, probes, attacks, parity, evaluation and variations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from shaketable.cli import completion
from shaketable.cli.help import Panel
from shaketable.cli.options.groups import make_option, make_repeatable
from shaketable.cli.options.output import WriteDocuments
from shaketable.cli.options.rankers import Reference

MEASURE_HELP = "A measure of effectiveness, as ir_measures names it, for example nDCG@10."

Tasks = Annotated[
    list[str] | None,
    make_repeatable(Panel.TASKS, "--task", metavar="TASK", autocompletion=completion.tasks,
        help="Run only this task, for example risk or \"risk(baseline='ql')\". 'shaketable list tasks' shows all "
             "tasks."),
]  # fmt: skip
Languages = Annotated[
    str,
    make_option(Panel.TASKS, "--languages", metavar="CODES",
        help="Also test the rankers in these languages, for example de,fr,ru (ISO 639-1 codes). By default, the "
             "languages that the queries of the collection declare."),
]  # fmt: skip
Findings = Annotated[
    list[str] | None,
    make_repeatable(Panel.TASKS, "--finding", metavar="NAME",
        help="Compare only findings with this name or pattern, for example nDCG@10 or 'drop(*)'. With fewer "
             "findings, the correction for multiple comparisons is smaller, so that smaller differences are "
             "significant."),
]  # fmt: skip

# evaluation
Measure = Annotated[
    str,
    make_option(Panel.EVALUATION, "--measure", metavar="MEASURE", autocompletion=completion.measures,
        help=MEASURE_HELP),
]  # fmt: skip
Measures = Annotated[
    list[str] | None,
    make_repeatable(Panel.EVALUATION, "--measure", metavar="MEASURE", autocompletion=completion.measures,
        help=MEASURE_HELP),
]  # fmt: skip
Alphas = Annotated[
    list[float] | None,
    make_repeatable(Panel.EVALUATION, "--alpha", metavar="NUMBER",
        help="The extra weight of losses in the risk measures: a loss counts 1 + alpha times as much as a gain of "
             "the same size."),
]  # fmt: skip
SignificanceTest = Annotated[
    str,
    make_option(Panel.STATISTICS, "--significance-test", metavar="TEST",
        help="The test that compares systems query by query: t_test, wilcoxon, randomisation or tukey_hsd (all systems "
             "at once, after a two-way analysis of variance)."),
]  # fmt: skip
Correction = Annotated[
    str,
    make_option(Panel.STATISTICS, "--correction", metavar="NAME",
        help="The correction of p-values for multiple comparisons: holm (the default), bonferroni or bh (Benjamini and "
             "Hochberg). tukey_hsd corrects by itself and takes none."),
]  # fmt: skip
Runs = Annotated[
    list[str] | None,
    make_repeatable(Panel.DATA, "--run", metavar="RUN",
        help="A TREC run file to evaluate; write NAME=FILE to choose its name in the tables."),
]  # fmt: skip
ScoresFile = Annotated[
    Path | None,
    make_option(Panel.DATA, "--scores", metavar="FILE",
        help="A CSV file of scores with a row for each topic and a column for each system, to use instead of "
             "--qrels and --run."),
]  # fmt: skip
Baselines = Annotated[
    list[str] | None,
    make_repeatable(Panel.EVALUATION, "--baseline", metavar="BASELINE",
        help="The baseline of the risk measures: the name of a system, or the mean (the default), median or max of "
             "all systems on each query."),
]  # fmt: skip

# probes
Probes = Annotated[
    list[str] | None,
    make_repeatable(Panel.PROBES, "--probe", metavar="PROBE", autocompletion=completion.probes,
        help="Run only probes with this name or pattern, for example negation or 'shuffle-*', or the probes of a "
             "preset: abnirml. 'shaketable list probes' shows all probes."),
]  # fmt: skip
UserPairsFile = Annotated[
    Path | None,
    make_option(Panel.PROBES, "--pairs", metavar="FILE",
        help="A file of your own text pairs: a JSON object on each line, with 'query', the texts 'a' and 'b', and "
             "'expect', which is a, b or same; or NevIR's layout, 'q1', 'q2', 'doc1' and 'doc2'. The exit code is 1 "
             "if the ranker's preference differs from the expectation."),
]  # fmt: skip
MaxDocuments = Annotated[
    int,
    make_option(Panel.PROBES, "--max-documents", metavar="NUMBER", min=0,
        help="Manipulate at most this many judged documents, chosen at random; 0 means all."),
]  # fmt: skip
Delta = Annotated[
    float | None,
    make_option(Panel.PROBES, "--delta", metavar="NUMBER", min=0,
        help="The smallest score difference that counts as a preference. By default, it is computed for each "
             "ranker from the score differences between neighbours in its lists."),
]  # fmt: skip
ParserName = Annotated[
    str,
    make_option(Panel.TEXT_ANALYSIS, "--parser", metavar="PARSER",
        help="The parser that finds sentences, lemmas and noun phrases: 'light' (rules), 'spacy', or 'spacy:MODEL' "
             "for an installed spaCy model."),
]  # fmt: skip
StopList = Annotated[
    str,
    make_option(Panel.TEXT_ANALYSIS, "--stopwords", metavar="LIST",
        help="The stop word list: 'english', or the path of a file with one word per line."),
]  # fmt: skip
Repeats = Annotated[
    int,
    make_option(Panel.EVALUATION, "--repeats", metavar="NUMBER", min=0,
        help="The number of lists to score two more times, to measure the noise in each ranker's scores."),
]  # fmt: skip

# attacks
Recipes = Annotated[
    list[str] | None,
    make_repeatable(Panel.ATTACKS, "--recipe", metavar="RECIPE", autocompletion=completion.recipes,
        help="An attack recipe, for example keyword_stuffing or 'wsra(words=10)'. 'shaketable list recipes' shows "
             "all recipes."),
]  # fmt: skip
GoalText = Annotated[
    str,
    make_option(Panel.ATTACKS, "--goal", metavar="GOAL", autocompletion=completion.goals,
        help="The attacker's goal: 'promote' a document, 'demote' it, or bring it into the top ten: 'top(k=10)'."),
]  # fmt: skip
Targets = Annotated[
    int,
    make_option(Panel.ATTACKS, "--targets", metavar="NUMBER", min=1,
        help="The number of documents to attack in each list. The ranks from 11 on are divided into this many "
             "ranges, and one document is chosen from each."),
]  # fmt: skip
AttackedQueries = Annotated[
    int,
    make_option(Panel.ATTACKS, "--attacked-queries", metavar="NUMBER", min=0,
        help="Attack the lists of at most this many queries, chosen at random; 0 means all."),
]  # fmt: skip
QueryGroupSize = Annotated[
    int,
    make_option(Panel.ATTACKS, "--group", metavar="NUMBER", min=1,
        help="Optimise each text for this many queries at once. The attacked documents come from outside the lists "
             "of these queries, and are added to each of the lists."),
]  # fmt: skip
MaxTrials = Annotated[
    int | None,
    make_option(Panel.ATTACKS, "--max-trials", metavar="NUMBER",
        help="The maximum number of texts that a recipe may have scored, for all attacked documents together. By "
             "default, there is no limit."),
]  # fmt: skip
AdversarialDocuments = Annotated[
    Path | None,
    make_option(Panel.ATTACKS, "--adversarial-documents", metavar="FILE",
        help="Use the adversarial documents in this file instead of searching for new ones. 'shaketable attack "
             "--write-documents FILE' writes such a file."),
]  # fmt: skip
AnyGrade = Annotated[
    bool,
    make_option(Panel.ATTACKS, "--any-grade",
        help="Attack relevant documents too. By default, only documents that are not relevant (grade 0) or not "
             "judged are attacked."),
]  # fmt: skip

# variations
Queries = Annotated[
    str,
    typer.Argument(metavar="QUERIES", help="The queries to vary: a collection ('sample' or a folder), a file of "
                   "topics, or '-' to read lines with an id, a tab and a query from standard input."),
]  # fmt: skip
Transforms = Annotated[
    list[str] | None,
    make_repeatable(Panel.VARIATIONS, "--transform", metavar="TRANSFORM", autocompletion=completion.transforms,
        help="A query transform, for example 'char_noise(edits=2)'. 'shaketable list transforms' shows all "
             "transforms."),
]  # fmt: skip
Categories = Annotated[
    list[str] | None,
    make_repeatable(Panel.VARIATIONS, "--category", metavar="CATEGORY", autocompletion=completion.categories,
        help="Use all transforms of this category: misspelling, naturality, ordering or paraphrasing; for other "
             "languages script, mixed-languages or translation."),
]  # fmt: skip
Variants = Annotated[
    Path | None,
    make_option(Panel.DATA, "--variants", metavar="FILE",
        help="A JSONL or TSV file of variations that people wrote. They are checked for validity as generated ones "
             "are."),
]  # fmt: skip
VariationsPerQuery = Annotated[
    int,
    make_option(Panel.VARIATIONS, "-n", metavar="NUMBER", min=1,
        help="The maximum number of different variations that each transform makes of each query."),
]  # fmt: skip
KeepCase = Annotated[
    bool,
    make_option(Panel.VARIATIONS, "--keep-case",
        help="Keep capital letters in the queries. By default, queries are converted to lower case."),
]  # fmt: skip


@dataclass(frozen=True)
class AttackFlags:
    """The targets, the recipes and the budget of an attack."""

    recipe: Recipes = None
    goal: GoalText = "promote"
    targets: Targets = 9
    attacked_queries: AttackedQueries = 0
    group: QueryGroupSize = 1
    max_trials: MaxTrials = None
    adversarial_documents: AdversarialDocuments = None
    any_grade: AnyGrade = False
    parser: ParserName = "light"
    write_documents: WriteDocuments = None

    def to_options(self) -> dict[str, Any]:
        """Return the options of the attack task."""
        return {
            "goal": self.goal,
            "targets": self.targets,
            "attacked_queries": self.attacked_queries,
            "group": self.group,
            "max_trials": self.max_trials,
            "adversarial_documents": self.adversarial_documents,
            "any_grade": self.any_grade,
            "parser": self.parser,
        }


@dataclass(frozen=True)
class ProbeFlags:
    """The probes to run, and the rules for counting preferences."""

    probe: Probes = None
    pairs: UserPairsFile = None
    max_documents: MaxDocuments = 0
    delta: Delta = None
    parser: ParserName = "light"
    stopwords: StopList = "english"
    correction: Correction = "bonferroni"

    def to_options(self) -> dict[str, Any]:
        """Return the options of the probes task."""
        return {
            "pairs": self.pairs,
            "delta": self.delta,
            "max_documents": self.max_documents,
            "parser": self.parser,
            "stopwords": self.stopwords,
            "correction": self.correction,
        }


@dataclass(frozen=True)
class ParityFlags:
    """The reference and the settings of a parity check."""

    reference: Reference = ""
    repeats: Repeats = 10
    measure: Measure = "nDCG@10"

    def to_options(self) -> dict[str, Any]:
        """Return the options of the parity task."""
        return {"reference": self.reference, "repeats": self.repeats, "measure": self.measure}
