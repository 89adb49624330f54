"""Flags for output: files, tables and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shaketable.cli.options.gates import Require
from shaketable.cli.options.groups import make_repeatable

AuditFolder = Annotated[Path, typer.Argument(metavar="AUDIT", help="The folder that 'shaketable audit' wrote.")]
BaseAudit = Annotated[
    str, typer.Argument(metavar="BASE", help="The earlier audit: the path of its folder, or of its results.json.")
]
NewAudit = Annotated[
    str, typer.Argument(metavar="NEW", help="The new audit: the path of its folder, or of its results.json.")
]
AllowEdited = Annotated[
    bool,
    typer.Option("--allow-edited", help="Use results.json although it is not as the audit wrote it, or there is no "
                 "manifest.json beside it to check it against."),
]  # fmt: skip
OutFolder = Annotated[
    Path, typer.Option("--out", metavar="FOLDER", help="The folder to write the report, the tables and the runs to.")
]
WriteRun = Annotated[
    Path,
    typer.Option("--write-run", metavar="FILE", help="The TREC run file to write; it is compressed if its name ends in "
                 ".gz."),
]  # fmt: skip
WriteVariations = Annotated[
    str,
    typer.Option("--write-variations", metavar="FILE", help="The file to write the variations to, .jsonl or .tsv (also "
                 ".gz); '-' is standard output, as JSONL."),
]  # fmt: skip
WriteDocuments = Annotated[
    Path | None,
    typer.Option("--write-documents", metavar="FILE", help="A JSONL file to write the changed documents to, with every "
                 "change marked."),
]  # fmt: skip
Tag = Annotated[
    str | None,
    typer.Option("--tag", metavar="NAME", help="The name of the run, which stands in the last column of its file. By "
                 "default it is the ranker's name."),
]  # fmt: skip
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file; '-' is standard output, and "
                 "tables and messages then go to standard error."),
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
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write an HTML page with the tables and the plots to this file."),
]
Summary = Annotated[
    str | None,
    typer.Option("--summary", metavar="FILE", help="Write a summary for a pull request, as Markdown, to this file; "
                 "'-' is standard output."),
]  # fmt: skip
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write the results of the gates to this file, as JUnit XML, which "
                 "build servers show."),
]  # fmt: skip
Badge = Annotated[
    Path | None,
    typer.Option("--badge", metavar="FILE", help="Write a badge to this file, as the JSON that shields.io shows."),
]
AllTables = Annotated[bool, typer.Option("--tables", help="Show all tables before the verdict.")]
TableNames = Annotated[
    list[str] | None,
    make_repeatable("--table", "Show this table before the verdict, for example effectiveness or 'risk: per query'.",
                    metavar="NAME"),
]  # fmt: skip
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print the result and errors only: no messages and no progress.")
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Also say what is opened, looked up, trained and cached, and how long each "
                 "task takes."),
]  # fmt: skip


@dataclass(frozen=True)
class VerdictFlags:
    """The output of an audit besides its verdict."""

    tables: AllTables = False
    table: TableNames = None
    json_to: Json = None


@dataclass(frozen=True)
class BuildServerFlags:
    """Files for build servers and pull requests."""

    junit_to: Junit = None
    summary_to: Summary = None
    badge_to: Badge = None


@dataclass(frozen=True)
class ReportFlags:
    """The gates of a report, and the target of its JSON."""

    require: Require = None
    json_to: Json = None


@dataclass(frozen=True)
class TableFlags:
    """The files and formats of the tables of an evaluation."""

    json_to: Json = None
    csv_to: Csv = None
    latex_to: Latex = None
    markdown_to: Markdown = None
    per_query_to: PerQuery = None
    html_to: Html = None
