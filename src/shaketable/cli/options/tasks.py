"""Flags for tasks, probes, attacks, parity, evaluation and variations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shaketable.cli import completion
from shaketable.cli.options.groups import make_repeatable
from shaketable.cli.options.output import WriteDocuments
from shaketable.cli.options.rankers import Reference

MEASURE_HELP = "A measure of effectiveness, by the name that ir_measures gives it, for example nDCG@10."

Tasks = Annotated[
    list[str] | None,
    make_repeatable("--task", "Run this task only, for example risk or \"risk(baseline='ql')\". 'shaketable list "
                    "tasks' shows them all.", metavar="TASK", autocompletion=completion.tasks),
]  # fmt: skip
Findings = Annotated[
    list[str] | None,
    make_repeatable("--finding", "Compare only the findings of this name or pattern, for example nDCG@10 or "
                    "'drop(*)'. If fewer are compared, a smaller difference is significant.", metavar="NAME"),
]  # fmt: skip

# evaluation
Measure = Annotated[
    str, typer.Option("--measure", metavar="MEASURE", autocompletion=completion.measures, help=MEASURE_HELP)
]
Measures = Annotated[
    list[str] | None,
    make_repeatable("--measure", MEASURE_HELP, metavar="MEASURE", autocompletion=completion.measures),
]
Alphas = Annotated[
    list[float] | None,
    make_repeatable("--alpha", "How much more a loss counts than a gain of the same size, in the measures of risk: "
                    "with 1, a loss counts twice.", metavar="NUMBER"),
]  # fmt: skip
SignificanceTest = Annotated[
    str,
    typer.Option("--significance-test", metavar="TEST", help="The statistical test by which systems are compared query "
                 "by query: t_test, wilcoxon or randomisation."),
]  # fmt: skip
Correction = Annotated[
    str,
    typer.Option("--correction", metavar="NAME", help="How p-values are corrected for the number of comparisons: holm, "
                 "bonferroni or bh (Benjamini and Hochberg)."),
]  # fmt: skip
Runs = Annotated[
    list[str] | None,
    make_repeatable("--run", "A TREC run file to evaluate; write NAME=FILE to choose its name in the tables.",
                    metavar="RUN"),
]  # fmt: skip
ScoresFile = Annotated[
    Path | None,
    typer.Option("--scores", metavar="FILE", help="A CSV file with a row for each topic and a column of scores for "
                 "each system, in place of --qrels and --run."),
]  # fmt: skip
Baselines = Annotated[
    list[str] | None,
    make_repeatable("--baseline", "What risk is measured against: the name of a system, or the mean (the default), the "
                    "median or the max of all systems on each query.", metavar="BASELINE"),
]  # fmt: skip

# probes
Probes = Annotated[
    list[str] | None,
    make_repeatable("--probe", "Run only the probes of this name or pattern, for example negation or 'shuffle-*'. "
                    "'shaketable list probes' shows them all.", metavar="PROBE", autocompletion=completion.probes),
]  # fmt: skip
UserPairsFile = Annotated[
    Path | None,
    typer.Option("--pairs", metavar="FILE", help="A file of your own pairs of texts: a JSON object on each line, with "
                 "'query', the texts 'a' and 'b', and 'expect', which is a, b or same. The exit code is 1 if the "
                 "ranker prefers another text than expected."),
]  # fmt: skip
MaxDocuments = Annotated[
    int,
    typer.Option("--max-documents", min=0, metavar="NUMBER", help="Manipulate at most this many judged documents, "
                 "drawn at random. 0 means all of them."),
]  # fmt: skip
Delta = Annotated[
    float | None,
    typer.Option("--delta", min=0, metavar="NUMBER", help="The smallest difference between two scores that counts as a "
                 "preference. By default each ranker has its own, which is typical of neighbours in its lists."),
]  # fmt: skip
ParserName = Annotated[
    str,
    typer.Option("--parser", metavar="PARSER", help="The parser that finds sentences, lemmas and noun phrases: 'light' "
                 "(rules), 'spacy', or 'spacy:MODEL' for a spaCy model that is installed."),
]  # fmt: skip
StopList = Annotated[
    str,
    typer.Option("--stopwords", metavar="LIST", help="The list of stop words: 'english', or the path of a file with a "
                 "word on each line."),
]  # fmt: skip
Repeats = Annotated[
    int,
    typer.Option("--repeats", min=0, metavar="NUMBER", help="How many lists are scored twice more, to measure how much "
                 "the scores of each ranker vary by themselves (its noise)."),
]  # fmt: skip

# attacks
Recipes = Annotated[
    list[str] | None,
    make_repeatable("--recipe", "A recipe for an attack, for example keyword_stuffing or 'wsra(words=10)'. "
                    "'shaketable list recipes' shows them all.", metavar="RECIPE", autocompletion=completion.recipes),
]  # fmt: skip
GoalText = Annotated[
    str,
    typer.Option("--goal", metavar="GOAL", autocompletion=completion.goals, help="The goal of the attack: to "
                 "'promote' a document, to 'demote' it, or 'top(k=10)' to bring it among the first ten."),
]  # fmt: skip
Targets = Annotated[
    int,
    typer.Option("--targets", min=1, metavar="NUMBER", help="How many documents of each list are attacked. The ranks "
                 "from 11 on are divided into this many ranges, and one document is taken from each."),
]  # fmt: skip
AttackedQueries = Annotated[
    int,
    typer.Option("--attacked-queries", min=0, metavar="NUMBER", help="Attack the lists of at most this many queries, "
                 "drawn at random. 0 means all of them."),
]  # fmt: skip
QueryGroupSize = Annotated[
    int,
    typer.Option("--group", min=1, metavar="NUMBER", help="Look for one text that does well for this many queries at "
                 "once: documents that are in none of their lists are changed and added to each list."),
]  # fmt: skip
MaxTrials = Annotated[
    int | None,
    typer.Option("--max-trials", metavar="NUMBER", help="The number of texts that a ranker may be asked about, for all "
                 "attacked documents of a recipe together. By default there is no limit."),
]  # fmt: skip
AdversarialDocuments = Annotated[
    Path | None,
    typer.Option("--adversarial-documents", metavar="FILE", help="Use the adversarial documents of this file in place "
                 "of a search for some; 'shaketable attack --write-documents FILE' writes such a file."),
]  # fmt: skip
AnyGrade = Annotated[
    bool,
    typer.Option("--any-grade", help="Attack relevant documents too, and not only those that are judged not relevant "
                 "(grade 0) or not judged."),
]  # fmt: skip

# variations
Queries = Annotated[
    str,
    typer.Argument(metavar="QUERIES", help="The queries to vary: a collection ('sample' or a folder), a file of "
                   "topics, or '-' to read lines with an id, a tab and a query from standard input."),
]  # fmt: skip
Transforms = Annotated[
    list[str] | None,
    make_repeatable("--transform", "A transform of queries, for example 'char_noise(edits=2)'. 'shaketable list "
                    "transforms' shows them all.", metavar="TRANSFORM", autocompletion=completion.transforms),
]  # fmt: skip
Categories = Annotated[
    list[str] | None,
    make_repeatable("--category", "Use all transforms of this category: misspelling, naturality, ordering or "
                    "paraphrasing.", metavar="CATEGORY", autocompletion=completion.categories),
]  # fmt: skip
Variants = Annotated[
    Path | None,
    typer.Option("--variants", metavar="FILE", help="A file of variations that people wrote (JSONL or TSV); whether "
                 "each is valid is judged as for the others."),
]  # fmt: skip
VariationsPerQuery = Annotated[
    int,
    typer.Option("-n", min=1, metavar="NUMBER", help="How many different variations of each query each transform "
                 "makes, at most."),
]  # fmt: skip
KeepCase = Annotated[
    bool, typer.Option("--keep-case", help="Leave capital letters in the queries; by default they become small.")
]


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


@dataclass(frozen=True)
class ParityFlags:
    """The reference and the settings of a parity check."""

    reference: Reference = ""
    repeats: Repeats = 10
    measure: Measure = "nDCG@10"
