"""The options of the commands, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shaketable.cli import complete


def _several(name: str, help_: str, **how: Any) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(name, help=f"{help_} The option may be repeated.", **how)
    return option


# what is ranked
Data = Annotated[
    str,
    typer.Option("--data", metavar="COLLECTION", help="The collection: 'sample' (bundled), the path of a BEIR folder, "
                 "or 'irds:ID' for a data set of ir_datasets, for example irds:beir/scifact/test."),
]  # fmt: skip
QueriesFile = Annotated[
    Path | None,
    typer.Option("--queries", metavar="FILE", help="A file of your own queries, in place of --data: JSONL, TSV, CSV or "
                 "Parquet with a column 'query' (or 'text'), or lines with an id, a tab and a query. A column 'count' "
                 "(or 'frequency' or 'n') says how often each query was asked, and gives it that weight."),
]  # fmt: skip
DocsFile = Annotated[
    Path | None,
    typer.Option("--docs", metavar="FILE", help="With --queries: a file of the documents, JSONL, TSV, CSV or Parquet "
                 "with a column 'text' (or 'body') and, where they are known, 'docno' (or 'id'), 'title' and 'url'."),
]  # fmt: skip
Collections = Annotated[
    list[str] | None,
    _several("--data", "The collection: 'sample' (bundled), the path of a BEIR folder, or 'irds:ID' for a data set of "
             "ir_datasets. A second collection is for the task corpus-shift.", metavar="COLLECTION"),
]  # fmt: skip
Split = Annotated[
    str | None,
    typer.Option("--split", metavar="SPLIT", help="Measure on the queries of this split of the collection, for example "
                 "'test'; 'all' takes every query."),
]  # fmt: skip
Cut = Annotated[
    str,
    typer.Option("--cut", metavar="SHARES", help="Deal the judged queries of a collection that has no splits into the "
                 "splits train, validation and test; the shares are in per cent, for example 60/20/20."),
]  # fmt: skip
Kinds = Annotated[
    str | None,
    typer.Option("--kinds", metavar="KINDS", help="Where to learn what kind of query each one is, such as 'location' "
                 "or 'numeric': 'rules' (built in); a TSV, CSV or JSONL file with a column 'qid' (or 'text') and a "
                 "column 'kind'; or a folder that 'shaketable train-kinds' wrote. By default, the kinds that come with "
                 "the collection are used."),
]  # fmt: skip
Candidates = Annotated[
    Path | None,
    typer.Option("--candidates", metavar="RUN", help="A TREC run file: every ranker ranks the documents of its lists, "
                 "and no others."),
]  # fmt: skip
FirstStage = Annotated[
    str,
    typer.Option("--first-stage", metavar="RANKER", autocompletion=complete.rankers, help="The ranker that searches "
                 "the collection for the re-rankers, which cannot search: they re-order the documents that it finds."),
]  # fmt: skip
Depth = Annotated[
    int,
    typer.Option("--depth", min=1, metavar="NUMBER", help="The number of documents that are ranked for each query."),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, metavar="NUMBER", help="Take only the first queries of the collection, this many of "
                 "them, for a quick look."),
]  # fmt: skip
Seed = Annotated[
    int,
    typer.Option("--seed", metavar="NUMBER", help="The number from which everything random is drawn: the same seed "
                 "gives the same result."),
]  # fmt: skip
KeepGoing = Annotated[
    bool,
    typer.Option("--keep-going", help="Do not stop when a ranker fails on a query: leave the query out for this "
                 "ranker, and report how many there were."),
]  # fmt: skip
Rankers = Annotated[
    list[str] | None,
    _several("--ranker", "A ranker: a name such as bm25 or 'bm25(k1=0.9)', the URL of an endpoint, a Python object "
             "(module:object), a run file (run:FILE) or a model folder (./model). Write NAME=RANKER to choose what the "
             "tables call it. 'shaketable list rankers' shows them all.",
             metavar="RANKER", autocompletion=complete.rankers),
]  # fmt: skip
OneRanker = Annotated[
    str,
    typer.Option("--ranker", metavar="RANKER", autocompletion=complete.rankers, help="The ranker, for example bm25; "
                 "write NAME=RANKER to give it a name. 'shaketable list rankers' shows them all."),
]  # fmt: skip

# who does the work
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, metavar="NUMBER", help="Divide scoring, training and attacks among this many "
                 "processes of this machine, each of which opens the rankers for itself. By default one process does "
                 "all; searches and nets use all cores in any case."),
]  # fmt: skip
Ray = Annotated[
    str | None,
    typer.Option("--ray", metavar="CLUSTER", help="Give the work to a Ray cluster: 'auto' is the one that this machine "
                 "is in, 'local' starts one here (with --jobs workers), and HOST:PORT is any other."),
]  # fmt: skip
WorkerCpus = Annotated[
    float | None,
    typer.Option(
        "--worker-cpus",
        min=0.01,
        metavar="NUMBER",
        help="With --ray: the number of cores that a job takes. By default it is one.",
    ),
]
WorkerGpus = Annotated[
    float | None,
    typer.Option("--worker-gpus", min=0.0, metavar="NUMBER", help="With --ray: the number of GPUs that a job takes. By "
                 "default it is none, or one where nets compute on a GPU here."),
]  # fmt: skip
Device = Annotated[
    str,
    typer.Option(
        "--device", metavar="DEVICE", help="What nets compute on: 'auto' (a GPU where there is one), 'cpu' or 'cuda'."
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        metavar="TYPE",
        help="The type of number that nets compute with: float32, bfloat16 or "
        "float16. By default it is that of each model.",
    ),
]
BatchTokens = Annotated[
    int | None,
    typer.Option("--batch-tokens", min=1, metavar="NUMBER", help="The number of tokens that a net reads at a time, "
                 "padding included; where memory is too small for them, it reads fewer."),
]  # fmt: skip

# what is measured
Tasks = Annotated[
    list[str] | None,
    _several("--task", "Run this task only, for example risk or \"risk(baseline='ql')\". 'shaketable list tasks' shows "
             "them all.", metavar="TASK", autocompletion=complete.tasks),
]  # fmt: skip
Rules = Annotated[
    list[str] | None,
    _several("--fail-under", "A gate: end with exit code 1 unless this holds. Write the name of a number, one of >=, "
             "<=, > and <, and a bound: 'nDCG@10>=0.4' is about the rankers under test, 'bm25.nDCG@10>=0.4' about one "
             "ranker, and 'nDCG@10.low>=0.35' about the lower end of the interval (.high, .p and .n can be asked for "
             "too).", metavar="GATE"),
]  # fmt: skip
RuleFiles = Annotated[
    list[Path] | None,
    _several("--rules", "A TOML file of gates, which are tables called [[fail_if]] and [[warn_if]]; docs/gates.md has "
             "examples.", metavar="FILE"),
]  # fmt: skip
DefaultGate = Annotated[
    bool,
    typer.Option("--gate", help="End with exit code 1 if a ranker under test fails the default gate: its order must "
                 "not be that of the first stage, it must not be significantly worse than the first stage, and no "
                 "facet may break. docs/answer.md says more."),
]  # fmt: skip
Measures = Annotated[
    list[str] | None,
    _several("--measure", "A measure of effectiveness, by the name that ir_measures gives it, for example nDCG@10.",
             metavar="MEASURE", autocompletion=complete.measures),
]  # fmt: skip
Alphas = Annotated[
    list[float] | None,
    _several("--alpha", "How much more a loss counts than a gain of the same size, in the measures of risk: with 1, a "
             "loss counts twice.", metavar="NUMBER"),
]  # fmt: skip
Test = Annotated[
    str,
    typer.Option("--test", metavar="TEST", help="The statistical test by which systems are compared query by query: "
                 "t_test, wilcoxon or randomisation."),
]  # fmt: skip
Correction = Annotated[
    str,
    typer.Option("--correction", metavar="NAME", help="How p-values are corrected, because many comparisons are made "
                 "at once: holm, bonferroni or bh (Benjamini and Hochberg)."),
]  # fmt: skip
QrelsFile = Annotated[
    Path | None,
    typer.Option("--qrels", metavar="FILE", help="With --queries: a file of relevance judgements, if there are any, in "
                 "the four columns of TREC or as a TSV file of BEIR."),
]  # fmt: skip
Qrels = Annotated[
    Path | None,
    typer.Option("--qrels", metavar="FILE", help="The relevance judgements, in the four columns of TREC or as a TSV "
                 "file of BEIR."),
]  # fmt: skip
Runs = Annotated[
    list[str] | None,
    _several("--run", "A TREC run file to evaluate; write NAME=FILE to choose what the tables call it.", metavar="RUN"),
]
ScoresFile = Annotated[
    Path | None,
    typer.Option("--scores", metavar="FILE", help="A CSV file with a row for each topic and a column of scores for "
                 "each system, in place of --qrels and --run."),
]  # fmt: skip
Baselines = Annotated[
    list[str] | None,
    _several("--baseline", "What risk is measured against: the name of a system, or the mean (the default), the median "
             "or the max of all systems on each query.", metavar="BASELINE"),
]  # fmt: skip

# what is probed
Probes = Annotated[
    list[str] | None,
    _several("--test", "Run only the behaviour tests of this name or pattern, for example negation or 'shuffle-*'. "
             "'shaketable list probes' shows them all.", metavar="TEST", autocompletion=complete.probes),
]  # fmt: skip
OwnPairs = Annotated[
    Path | None,
    typer.Option("--pairs", metavar="FILE", help="A file of your own pairs of texts: a JSON object on each line, with "
                 "'query', the texts 'a' and 'b', and 'expect', which is a, b or same. The exit code is 1 if the "
                 "ranker prefers another text than expected."),
]  # fmt: skip
Documents = Annotated[
    int,
    typer.Option("--documents", min=0, metavar="NUMBER", help="How many judged documents are manipulated; they are "
                 "drawn at random. 0 means all of them."),
]  # fmt: skip
Delta = Annotated[
    float | None,
    typer.Option("--delta", min=0, metavar="NUMBER", help="The smallest difference between two scores that counts as a "
                 "preference. By default each ranker has its own, which is typical of neighbours in its lists."),
]  # fmt: skip
LanguageTool = Annotated[
    str,
    typer.Option("--language", metavar="TOOL", help="What finds sentences, lemmas and noun phrases: 'light' (rules), "
                 "'spacy', or 'spacy:MODEL' for a spaCy model that is installed."),
]  # fmt: skip
StopList = Annotated[
    str,
    typer.Option("--stopwords", metavar="LIST", help="The list of stop words: 'english', or the path of a file with a "
                 "word on each line."),
]  # fmt: skip

# what it would cost
PlanOnly = Annotated[
    bool,
    typer.Option("--plan", help="Send nothing and measure nothing: show how many query-document pairs and requests "
                 "each task would ask of each ranker, and how long they would take."),
]  # fmt: skip
Price = Annotated[
    float | None,
    typer.Option("--price-per-1k", min=0, metavar="PRICE", help="With --plan: the price of 1,000 requests to an "
                 "endpoint, in any currency."),
]  # fmt: skip
Latency = Annotated[
    float,
    typer.Option("--seconds-per-request", min=0, metavar="SECONDS", help="With --plan: how long one request to an "
                 "endpoint takes."),
]  # fmt: skip

# what is compared
Reference = Annotated[
    str,
    typer.Option("--reference", metavar="NAME", help="The ranker that the others are compared with. By default it is "
                 "the first that is named."),
]  # fmt: skip
Repeats = Annotated[
    int,
    typer.Option("--repeats", min=0, metavar="NUMBER", help="How many lists are scored twice more, to see how much "
                 "the scores of each ranker vary by themselves (its noise)."),
]  # fmt: skip
Measure = Annotated[
    str,
    typer.Option("--measure", metavar="MEASURE", autocompletion=complete.measures, help="The measure of effectiveness "
                 "where there are judgements, by the name that ir_measures gives it."),
]  # fmt: skip

BaseAudit = Annotated[
    str, typer.Argument(metavar="BASE", help="The earlier audit: the path of its folder, or of its results.json.")
]
NewAudit = Annotated[
    str, typer.Argument(metavar="NEW", help="The new audit: the path of its folder, or of its results.json.")
]
AuditFolder = Annotated[Path, typer.Argument(metavar="AUDIT", help="The folder that 'shaketable audit' wrote.")]
BaseRanker = Annotated[
    str,
    typer.Option("--base-ranker", metavar="NAME", help="The ranker of the earlier audit to compare with. By default, "
                 "rankers of the same name are compared."),
]  # fmt: skip
NewRanker = Annotated[
    str,
    typer.Option("--new-ranker", metavar="NAME", help="The ranker of the new audit that took the place of "
                 "--base-ranker."),
]  # fmt: skip
Findings = Annotated[
    list[str] | None,
    _several("--finding", "Compare only the findings of this name or pattern, for example nDCG@10 or 'drop(*)'. If "
             "fewer are compared, a smaller difference is significant.", metavar="NAME"),
]  # fmt: skip
Despite = Annotated[
    list[str] | None,
    _several("--despite", "Compare although the two audits differ in this: data, lists, tasks or seed.",
             metavar="WHAT"),
]  # fmt: skip
FailOnRegression = Annotated[
    bool, typer.Option("--fail-on-regression", help="End with exit code 1 if the new version is significantly worse.")
]

# what is attacked
Recipes = Annotated[
    list[str] | None,
    _several("--recipe", "A recipe for an attack, for example keyword_stuffing or 'wsra(words=10)'. 'shaketable list "
             "recipes' shows them all.", metavar="RECIPE", autocompletion=complete.recipes),
]  # fmt: skip
GoalText = Annotated[
    str,
    typer.Option("--goal", metavar="GOAL", autocompletion=complete.goals, help="What the attack is after: to 'promote' "
                 "a document, to 'demote' it, or 'top(k=10)' to bring it among the first ten."),
]  # fmt: skip
Targets = Annotated[
    int,
    typer.Option("--targets", min=1, metavar="NUMBER", help="How many documents of each list are attacked. The places "
                 "from the 11th on are divided into this many ranges, and one document is taken from each."),
]  # fmt: skip
AttackedQueries = Annotated[
    int,
    typer.Option("--queries", min=0, metavar="NUMBER", help="How many queries' lists are attacked; the queries are "
                 "drawn at random. 0 means all of them."),
]  # fmt: skip
Group = Annotated[
    int,
    typer.Option("--group", min=1, metavar="NUMBER", help="Look for one text that does well for this many queries at "
                 "once: documents that are in none of their lists are changed and added to each list."),
]  # fmt: skip
Budget = Annotated[
    int | None,
    typer.Option("--budget", metavar="NUMBER", help="The number of texts that a ranker may be asked about, for all "
                 "attacked documents of a recipe together. By default there is no limit."),
]  # fmt: skip
AttackedFile = Annotated[
    Path | None,
    typer.Option("--attacked", metavar="FILE", help="Search for no attack: try the changed documents of this file, "
                 "which --out wrote in an attack on another ranker, or which other people wrote."),
]  # fmt: skip
AnyGrade = Annotated[
    bool,
    typer.Option("--any-grade", help="Attack relevant documents too, and not only those that are judged not relevant "
                 "(grade 0) or not judged."),
]  # fmt: skip
AttackedOut = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="A JSONL file to write the changed documents to, with every change "
                 "marked."),
]  # fmt: skip
ReportFolder = Annotated[
    Path, typer.Option("--report", metavar="FOLDER", help="The folder to write the report and the tables to.")
]

# what is learned
LearnerText = Annotated[
    str,
    typer.Argument(metavar="LEARNER", autocompletion=complete.learners, help="What learns: a learner, for example knrm "
                   "or \"lambdamart(objective='georisk', alpha=1)\", which becomes a ranker, or a writer, which writes "
                   "texts. 'shaketable list learners' shows them all."),
]  # fmt: skip
TrainData = Annotated[
    str | None,
    typer.Option("--data", metavar="COLLECTION", help="The collection to learn from: 'sample' (bundled), the path of a "
                 "BEIR folder, or 'irds:ID'."),
]  # fmt: skip
Pairs = Annotated[
    Path | None,
    typer.Option("--pairs", metavar="FILE", help="For a writer, in place of a collection: a TSV file with the text "
                 "that it reads and the text that it should write on each line."),
]  # fmt: skip
ModelOut = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="FOLDER", help="The folder to write the model to; '--ranker FOLDER' then uses "
                 "it."),
]  # fmt: skip
Letor = Annotated[
    Path | None,
    typer.Option("--letor", metavar="FILE", help="A file of features to learn from (LETOR, which is SVMlight's form; "
                 "also .gz), in place of a collection."),
]  # fmt: skip
LetorValid = Annotated[
    Path | None, typer.Option("--valid", metavar="FILE", help="With --letor: the file of features to validate on.")
]
LetorTest = Annotated[
    Path | None,
    typer.Option("--test", metavar="FILE", help="With --letor: a file of features to rank with the model; test.run and "
                 "test.qrels are written into the model's folder."),
]  # fmt: skip
TrainSplit = Annotated[str, typer.Option("--split", metavar="SPLIT", help="The split of the collection to learn from.")]
ValidSplit = Annotated[
    str | None,
    typer.Option("--valid-split", metavar="SPLIT", help="The split of the collection to validate on. By default it is "
                 "'validation' or 'dev', where the collection has one."),
]  # fmt: skip
Folds = Annotated[
    int,
    typer.Option("--folds", min=0, metavar="NUMBER", help="Cross-validation: learn this many times, each time without "
                 "a part of the queries, and join the lists that the models make for these parts to one run."),
]  # fmt: skip
NotToLoseTo = Annotated[
    list[str] | None,
    _several("--baseline", "What a risk-sensitive objective should not lose to: a feature (feature:110), a run "
             "(run:FILE), a table of scores (scores:FILE.csv), a model (model:FOLDER), or a ranker.",
             metavar="BASELINE"),
]  # fmt: skip
Tune = Annotated[
    bool,
    typer.Option("--tune", help="Try the settings from which the learner's paper chose, and keep those that do best on "
                 "the validation queries."),
]  # fmt: skip
Preset = Annotated[
    str | None,
    typer.Option("--preset", metavar="NAME", help="Train a neural ranker with the settings for one of these data sets: "
                 "robust04, mq2007 or msmarco."),
]  # fmt: skip
DefenceText = Annotated[
    str | None,
    typer.Option("--defence", metavar="DEFENCE", autocompletion=complete.defences, help="Train the ranker in a way "
                 "that attacks should move it less: for example at (adversarial training) or "
                 "\"piat(loss='listnet')\"; st is training without a defence. 'shaketable list defences' shows them "
                 "all."),
]  # fmt: skip
AttackedExamples = Annotated[
    Path | None,
    typer.Option("--attacked", metavar="FILE", help="With --defence: learn from the attacked documents of this file, "
                 "which 'shaketable attack --out FILE' wrote. By default the undefended ranker is attacked first."),
]  # fmt: skip
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the model that is in the folder already.")]

KindsOut = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="FOLDER", help="The new folder to write the model to; 'shaketable audit "
                 "--kinds FOLDER' then uses it."),
]  # fmt: skip

# what is varied
Queries = Annotated[
    str,
    typer.Argument(metavar="QUERIES", help="The queries to vary: a collection ('sample' or a folder), a file of "
                   "topics, or '-' to read lines with an id, a tab and a query from standard input."),
]  # fmt: skip
Methods = Annotated[
    list[str] | None,
    _several("--method", "A method to vary a query by, for example 'char_attack(edits=2)'. 'shaketable list edits' "
             "shows them all.", metavar="METHOD", autocompletion=complete.methods),
]  # fmt: skip
Categories = Annotated[
    list[str] | None,
    _several("--category", "Use all methods of this category: misspelling, naturality, ordering or paraphrasing.",
             metavar="CATEGORY", autocompletion=complete.categories),
]  # fmt: skip
Variants = Annotated[
    Path | None,
    typer.Option("--variants", metavar="FILE", help="A file of variations that people wrote (JSONL or TSV); whether "
                 "each is valid is judged as for the others."),
]  # fmt: skip
Number = Annotated[
    int,
    typer.Option("-n", min=1, metavar="NUMBER", help="How many different variations of each query each method makes, "
                 "at most."),
]  # fmt: skip
KeepCase = Annotated[
    bool, typer.Option("--keep-case", help="Leave capital letters in the queries; by default they become small.")
]

# how much is said
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print the result and errors only: no remarks and no progress.")
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Also say what is opened, looked up, trained and kept, and how long each "
                 "task takes."),
]  # fmt: skip

AllTables = Annotated[bool, typer.Option("--tables", help="Show all tables before the answer.")]
TableNames = Annotated[
    list[str] | None,
    _several("--table", "Show this table before the answer, for example effectiveness or 'risk: per query'.",
             metavar="NAME"),
]  # fmt: skip

# where it goes
Out = Annotated[
    Path, typer.Option("--out", metavar="FOLDER", help="The folder to write the report, the tables and the runs to.")
]
RunOut = Annotated[
    Path,
    typer.Option("--out", metavar="FILE", help="The TREC run file to write; it is compressed if its name ends in .gz."),
]
VariationsOut = Annotated[
    str,
    typer.Option("--out", metavar="FILE", help="The file to write the variations to, .jsonl or .tsv (also .gz); '-' is "
                 "standard output, as JSONL."),
]  # fmt: skip
Tag = Annotated[
    str | None,
    typer.Option("--tag", metavar="NAME", help="The name of the run, which stands in the last column of its file. By "
                 "default it is the ranker's name."),
]  # fmt: skip
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file; '-' is standard output, and "
                 "what is for people then goes to standard error."),
]  # fmt: skip
Csv = Annotated[
    Path | None, typer.Option("--csv", metavar="FOLDER", help="Write every table as a CSV file into this folder.")
]
Latex = Annotated[
    Path | None, typer.Option("--latex", metavar="FOLDER", help="Write every table as a LaTeX file into this folder.")
]
Markdown = Annotated[
    Path | None,
    typer.Option("--markdown", metavar="FOLDER", help="Write every table as a Markdown file into this folder."),
]
PerQuery = Annotated[
    Path | None,
    typer.Option("--per-query", metavar="FOLDER", help="Write the value of every measure for every query into this "
                 "folder, in the form that 'trec_eval -q' prints."),
]  # fmt: skip
Summary = Annotated[
    str | None,
    typer.Option("--markdown", metavar="FILE", help="Write a summary for a pull request, as Markdown, to this file; "
                 "'-' is standard output."),
]  # fmt: skip
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write what became of the gates to this file, as JUnit XML, which "
                 "build servers show."),
]  # fmt: skip
Badge = Annotated[
    Path | None,
    typer.Option("--badge", metavar="FILE", help="Write a badge to this file, as the JSON that shields.io shows."),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write an HTML page with the tables and the plots to this file."),
]
