"""The options of the commands, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _several(name: str, help_: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(name, help=f"{help_} The option may be repeated.")
    return option


# what is ranked
Data = Annotated[str, typer.Option("--data", help="The collection: 'sample', a BEIR folder, or 'irds:ID'.")]
QueriesFile = Annotated[
    Path | None,
    typer.Option("--queries", help="Queries of your own, in place of --data: JSONL, TSV, CSV or Parquet with a column "
                 "query (or text), or lines of id TAB query. A column count (or frequency, n) says how often each was "
                 "asked, and weighs it."),
]  # fmt: skip
DocsFile = Annotated[
    Path | None,
    typer.Option("--docs", help="With --queries: the documents, JSONL, TSV, CSV or Parquet with a column text (or "
                 "body) and, where known, docno (or id), title and url."),
]  # fmt: skip
Collections = Annotated[
    list[str] | None,
    _several("--data", "The collection: 'sample', a BEIR folder, or 'irds:ID'; further ones are for the task "
             "corpus-shift."),
]  # fmt: skip
Split = Annotated[
    str | None,
    typer.Option("--split", help="Measure on the queries of this split, such as test; 'all' for all."),
]
Cut = Annotated[
    str,
    typer.Option("--cut", help="Deal the judged queries of a collection without splits into train, validation and "
                 "test, in per cent: 60/20/20."),
]  # fmt: skip
Kinds = Annotated[
    str | None,
    typer.Option("--kinds", help="What kind each query is of, such as location or numeric: 'rules'; a TSV, CSV or "
                 "JSONL file with qid (or text) and kind; or a folder that 'train-kinds' wrote. By default, the kinds "
                 "that come with the collection."),
]  # fmt: skip
Candidates = Annotated[
    Path | None, typer.Option("--candidates", help="A TREC run; all rankers rank its documents and no others.")
]
FirstStage = Annotated[
    str, typer.Option("--first-stage", help="The ranker that finds documents for those that cannot search.")
]
Depth = Annotated[int, typer.Option("--depth", min=1, help="The number of documents to rank for each query.")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Take only the first so many queries, for a quick look.")
]
Seed = Annotated[int, typer.Option("--seed", help="The seed of all chance: the same seed gives the same result.")]
KeepGoing = Annotated[
    bool,
    typer.Option("--keep-going", help="Count the queries that a ranker fails on, and do not stop at the first."),
]
Rankers = Annotated[
    list[str] | None,
    _several("--ranker", "A ranker: bm25(k1=0.9), a URL, module:object, run:FILE, a model folder; or NAME=RANKER to "
             "give it a name. 'shaketable list rankers' shows them all."),
]  # fmt: skip
OneRanker = Annotated[
    str, typer.Option("--ranker", help="The ranker, or NAME=RANKER; 'shaketable list rankers' shows them all.")
]

# who does the work
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="Hand scoring, training and attacks to so many processes of this machine; each "
                 "opens the rankers for itself. By default one process does all; searches and nets use all cores."),
]  # fmt: skip
Ray = Annotated[
    str | None,
    typer.Option("--ray", help="Hand the work to a Ray cluster: auto for the one that this machine is in, local to "
                 "start one here (of --jobs workers), or HOST:PORT."),
]  # fmt: skip
WorkerCpus = Annotated[
    float | None,
    typer.Option("--worker-cpus", min=0.01, help="With --ray: the cores that a job takes; by default one."),
]
WorkerGpus = Annotated[
    float | None,
    typer.Option("--worker-gpus", min=0.0, help="With --ray: the GPUs that a job takes; by default none, or one where "
                 "nets compute on a GPU here."),
]  # fmt: skip
Device = Annotated[
    str, typer.Option("--device", help="What nets compute on: auto (a GPU where there is one), cpu or cuda.")
]
Dtype = Annotated[
    str | None,
    typer.Option("--dtype", help="How exactly nets compute: float32, bfloat16 or float16; by default as each says."),
]
BatchTokens = Annotated[
    int | None,
    typer.Option("--batch-tokens", min=1, help="The tokens that a net reads at a time, padding included; where memory "
                 "is too small for them, fewer."),
]  # fmt: skip

# what is measured
Tasks = Annotated[list[str] | None, _several("--task", "Run only this task, for example risk(baseline='ql').")]
Rules = Annotated[
    list[str] | None,
    _several("--fail-under", "End with exit code 1 unless this holds: 'bm25.nDCG@10>=0.4'."),
]
Measures = Annotated[list[str] | None, _several("--measure", "A measure by its ir_measures name, such as nDCG@10.")]
Alphas = Annotated[list[float] | None, _several("--alpha", "How much more a loss weighs than a gain.")]
Test = Annotated[str, typer.Option("--test", help="The paired test: t_test, wilcoxon or randomisation.")]
Correction = Annotated[
    str, typer.Option("--correction", help="The correction for many comparisons: holm, bonferroni or bh.")
]
QrelsFile = Annotated[
    Path | None,
    typer.Option("--qrels", help="With --queries: the judgements, TREC's four columns or BEIR's TSV; not needed."),
]
Qrels = Annotated[Path | None, typer.Option("--qrels", help="The judgements: TREC's four columns, or BEIR's TSV.")]
Runs = Annotated[list[str] | None, _several("--run", "A TREC run file, or NAME=FILE to give it a name.")]
ScoresFile = Annotated[
    Path | None, typer.Option("--scores", help="A CSV table of topics by systems, in place of judgements and runs.")
]
Baselines = Annotated[
    list[str] | None,
    _several("--baseline", "What to compare with: a system, or the mean (the default), median or max of all systems."),
]

# what is probed
Probes = Annotated[
    list[str] | None,
    _several("--test", "Run only the tests of this name or pattern, such as 'shuffle-*'; see 'list probes'."),
]
OwnPairs = Annotated[
    Path | None,
    typer.Option("--pairs", help="Pairs of your own: a JSON object on each line, with query, a, b and expect (a, b or "
                 "same). The exit code is 1 if one does not come out as expected."),
]  # fmt: skip
Documents = Annotated[
    int,
    typer.Option("--documents", min=0, help="Manipulate only so many judged documents, drawn at random; 0 means all."),
]
Delta = Annotated[
    float | None,
    typer.Option("--delta", min=0, help="The difference in score that counts; each ranker has its own by default."),
]
LanguageTool = Annotated[
    str, typer.Option("--language", help="The linguistic tool: light, spacy, or spacy:MODEL for an installed model.")
]
StopList = Annotated[
    str, typer.Option("--stopwords", help="The stop list: english, or a file with a word on each line.")
]

# what it would cost
PlanOnly = Annotated[
    bool,
    typer.Option("--plan", help="Send nothing: show how many pairs and requests each task would ask of each ranker, "
                 "and what they take."),
]  # fmt: skip
Price = Annotated[
    float | None, typer.Option("--price-per-1k", min=0, help="With --plan: what 1,000 requests to an endpoint cost.")
]
Latency = Annotated[
    float,
    typer.Option("--seconds-per-request", min=0, help="With --plan: how long a request to an endpoint takes."),
]

# what is compared
Reference = Annotated[
    str, typer.Option("--reference", help="The ranker that the others are compared with; the first by default.")
]
Repeats = Annotated[
    int,
    typer.Option("--repeats", min=0, help="Score the lists of so many queries twice more, for each ranker's noise."),
]
Measure = Annotated[
    str, typer.Option("--measure", help="What a list is worth, where there are judgements, by its ir_measures name.")
]

# what is attacked
Recipes = Annotated[
    list[str] | None,
    _several("--recipe", "A recipe, for example 'keyword_stuffing' or 'wsra(words=10)'; see 'list recipes'."),
]
GoalText = Annotated[
    str, typer.Option("--goal", help="What the attack is after: promote, demote, or 'top(k=10)' for the first ten.")
]
Targets = Annotated[
    int,
    typer.Option("--targets", min=1, help="Attack so many documents of each list, one from each of so many ranges of "
                 "places from the 11th on."),
]  # fmt: skip
AttackedQueries = Annotated[
    int, typer.Option("--queries", min=0, help="Attack the lists of so many queries, drawn at random; 0 means all.")
]
Group = Annotated[
    int,
    typer.Option("--group", min=1, help="Look for one text that does well for so many queries at once: documents that "
                 "are in none of their lists are changed and added to each."),
]  # fmt: skip
Budget = Annotated[
    int | None,
    typer.Option("--budget", help="Ask a ranker about at most so many texts, for all targets of a recipe together."),
]
AttackedFile = Annotated[
    Path | None,
    typer.Option("--attacked", help="Try the changed documents of this file (see --out), made against another ranker "
                 "or written by others, and search for none."),
]  # fmt: skip
AnyGrade = Annotated[
    bool, typer.Option("--any-grade", help="Attack relevant documents too, not only those of grade 0 or no grade.")
]
AttackedOut = Annotated[
    Path | None,
    typer.Option("--out", help="A JSONL file for the changed documents, with their edits marked."),
]
ReportFolder = Annotated[Path, typer.Option("--report", help="The folder for the report and the tables.")]

# what is learned
LearnerText = Annotated[
    str,
    typer.Argument(
        help="The learner, for example lambdamart(objective='georisk', alpha=1), or a writer; see 'list learners'."
    ),
]
TrainData = Annotated[str | None, typer.Option("--data", help="The collection to learn from.")]
Pairs = Annotated[
    Path | None,
    typer.Option("--pairs", help="For a writer: a TSV file of what is read and what is to be written, in place of a "
                 "collection."),
]  # fmt: skip
ModelOut = Annotated[Path, typer.Option("--out", "-o", help="The model folder to write.")]
Letor = Annotated[
    Path | None, typer.Option("--letor", help="A feature file (SVMlight form, .gz) to learn from, not a collection.")
]
LetorValid = Annotated[Path | None, typer.Option("--valid", help="With --letor: the feature file to validate on.")]
LetorTest = Annotated[
    Path | None, typer.Option("--test", help="With --letor: a feature file to rank; writes test.run and test.qrels.")
]
TrainSplit = Annotated[str, typer.Option("--split", help="The split of the collection to learn from.")]
ValidSplit = Annotated[
    str | None,
    typer.Option("--valid-split", help="The split to validate on; by default 'validation' or 'dev'."),
]
Folds = Annotated[
    int, typer.Option("--folds", min=0, help="Learn so many times, each time without a part of the queries, and join "
                      "the lists of these parts to one run."),
]  # fmt: skip
NotToLoseTo = Annotated[
    list[str] | None,
    _several("--baseline", "What a risk-sensitive objective compares with: feature:N, run:FILE, scores:FILE.csv, "
             "model:FOLDER, or a ranker."),
]  # fmt: skip
Tune = Annotated[
    bool,
    typer.Option("--tune", help="Choose settings from the grid of the learner's paper by validation."),
]
Preset = Annotated[
    str | None, typer.Option("--preset", help="Take a neural ranker's settings for robust04, mq2007 or msmarco.")
]
DefenceText = Annotated[
    str | None,
    typer.Option("--defence", help="Train the ranker so that attacks move it less: st (none), da, at or piat, for "
                 "example \"piat(loss='listnet')\"; see 'list defences'."),
]  # fmt: skip
AttackedExamples = Annotated[
    Path | None,
    typer.Option("--attacked", help="With --defence: learn from the attacked documents of this file ('attack --out'), "
                 "in place of attacks on the undefended ranker."),
]  # fmt: skip
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the model that is in the folder already.")]

KindsOut = Annotated[Path, typer.Option("--out", "-o", help="The new folder for the model, for audit --kinds FOLDER.")]

# what is varied
Queries = Annotated[
    str, typer.Argument(help="A collection ('sample', a folder), a file of topics, or '-' for 'id TAB query' lines.")
]
Methods = Annotated[list[str] | None, _several("--method", "A method, for example char_attack(edits=2).")]
Categories = Annotated[list[str] | None, _several("--category", "All methods of a category, for example misspelling.")]
Variants = Annotated[
    Path | None, typer.Option("--variants", help="A file of variants that people wrote (JSONL or TSV), to judge alike.")
]
Number = Annotated[
    int,
    typer.Option("-n", min=1, help="Make at most so many distinct variations of each query by each method."),
]
KeepCase = Annotated[bool, typer.Option("--keep-case", help="Do not turn the queries into lower case first.")]

# where it goes
Out = Annotated[Path, typer.Option("--out", help="The folder for the report, the tables and the runs.")]
RunOut = Annotated[Path, typer.Option("--out", help="The TREC run to write; it is gzipped if its name ends in .gz.")]
VariationsOut = Annotated[
    str, typer.Option("--out", help="A .jsonl or .tsv file (also .gz), or '-' for JSONL on standard output.")
]
Tag = Annotated[str | None, typer.Option("--tag", help="The name of the run, which stands in its last column.")]
Json = Annotated[
    str | None, typer.Option("--json", help="Write the result as JSON to this file, or '-' for standard output.")
]
Csv = Annotated[Path | None, typer.Option("--csv", help="Write every table as a CSV file into this folder.")]
Latex = Annotated[Path | None, typer.Option("--latex", help="Write every table for LaTeX into this folder.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Write every table as Markdown into this folder.")]
PerQuery = Annotated[
    Path | None, typer.Option("--per-query", help="Write the values of each query, as trec_eval -q, into this folder.")
]
Html = Annotated[Path | None, typer.Option("--html", help="Write a page with tables and plots to this file.")]
