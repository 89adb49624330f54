"""Flags for output: files, tables and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shaketable.cli.help import Panel
from shaketable.cli.options.gates import Require
from shaketable.cli.options.groups import make_option, make_repeatable

AuditFolder = Annotated[Path, typer.Argument(metavar="AUDIT", help="The folder that 'shaketable audit' wrote.")]
AuditFolders = Annotated[list[Path], typer.Argument(metavar="AUDIT", help="The folders that 'shaketable audit' wrote.")]
BaseAudit = Annotated[
    str, typer.Argument(metavar="BASE", help="The earlier audit: the path of its folder, or of its results.json.")
]
NewAudit = Annotated[
    str, typer.Argument(metavar="NEW", help="The new audit: the path of its folder, or of its results.json.")
]
AllowEdited = Annotated[
    bool,
    make_option(Panel.DATA, "--allow-edited",
        help="Use a results.json that was edited after the audit, or that has no manifest.json to check it with."),
]  # fmt: skip
OutFolder = Annotated[
    Path,
    make_option(Panel.OUTPUT, "--out", metavar="FOLDER",
        help="The folder for the report, the tables and the runs."),
]  # fmt: skip
WriteRun = Annotated[
    Path,
    make_option(Panel.OUTPUT, "--write-run", metavar="FILE",
        help="The TREC run file to write, compressed if the name ends in .gz."),
]  # fmt: skip
WriteVariations = Annotated[
    str,
    make_option(Panel.OUTPUT, "--write-variations", metavar="FILE",
        help="The file for the variations: .jsonl or .tsv, also .gz. '-' means standard output, as JSONL."),
]  # fmt: skip
WriteDocuments = Annotated[
    Path | None,
    make_option(Panel.OUTPUT, "--write-documents", metavar="FILE",
        help="The JSONL file for the changed documents, with every change marked."),
]  # fmt: skip
Tag = Annotated[
    str | None,
    make_option(Panel.OUTPUT, "--tag", metavar="NAME",
        help="The name of the run, in the last column of its file. By default, it is the ranker's name."),
]  # fmt: skip
Json = Annotated[
    str | None,
    make_option(Panel.OUTPUT, "--json", metavar="FILE",
        help="Write the result as JSON to this file. '-' means standard output; tables and messages then go to "
             "standard error."),
]  # fmt: skip
Csv = Annotated[
    Path | None,
    make_option(Panel.OUTPUT, "--csv", metavar="FOLDER",
        help="Write each table as a CSV file to this folder."),
]  # fmt: skip
Latex = Annotated[
    Path | None,
    make_option(Panel.OUTPUT, "--latex", metavar="PATH",
        help="Write the table of systems by measures to this file (.tex), or every table to this folder, for the LaTeX "
             "package booktabs."),
]  # fmt: skip
Markdown = Annotated[
    Path | None,
    make_option(Panel.OUTPUT, "--markdown", metavar="PATH",
        help="Write the table of systems by measures to this file (.md), or every table to this folder, as Markdown."),
]  # fmt: skip
PerQuery = Annotated[
    Path | None,
    make_option(Panel.OUTPUT, "--per-query", metavar="FOLDER",
        help="Write the value of each measure for each query to this folder, in the format of 'trec_eval -q'."),
]  # fmt: skip
Html = Annotated[
    Path | None,
    make_option(Panel.OUTPUT, "--html", metavar="FILE",
        help="Write an HTML page with the tables and the charts to this file."),
]  # fmt: skip
Summary = Annotated[
    str | None,
    make_option(Panel.OUTPUT, "--summary", metavar="FILE",
        help="Write a summary for a pull request to this file, as Markdown. '-' means standard output."),
]  # fmt: skip
Junit = Annotated[
    Path | None,
    make_option(Panel.OUTPUT, "--junit", metavar="FILE",
        help="Write the results of the gates to this file, as JUnit XML for build servers."),
]  # fmt: skip
Badge = Annotated[
    Path | None,
    make_option(Panel.OUTPUT, "--badge", metavar="FILE",
        help="Write a badge for shields.io to this file, as JSON."),
]  # fmt: skip
AllTables = Annotated[
    bool,
    make_option(Panel.OUTPUT, "--tables",
        help="Print all tables before the verdict."),
]  # fmt: skip
TableNames = Annotated[
    list[str] | None,
    make_repeatable(Panel.OUTPUT, "--table", metavar="NAME",
        help="Print this table before the verdict, for example effectiveness, 'risk: per query' or systems (systems by "
             "measures, with significance)."),
]  # fmt: skip
Quiet = Annotated[
    bool,
    make_option(Panel.GENERAL, "--quiet", "-q",
        help="Print only results and errors: no messages and no progress bars."),
]  # fmt: skip
Verbose = Annotated[
    bool,
    make_option(Panel.GENERAL, "--verbose", "-v",
        help="Also print what is opened, looked up, trained and cached, and how long each task takes."),
]  # fmt: skip


@dataclass(frozen=True)
class VerdictFlags:
    """The output of an audit besides its verdict."""

    tables: AllTables = False
    table: TableNames = None
    json_to: Json = None
    latex_to: Latex = None
    markdown_to: Markdown = None


@dataclass(frozen=True)
class BuildServerFlags:
    """Files for build servers and pull requests."""

    junit_to: Junit = None
    summary_to: Summary = None
    badge_to: Badge = None


@dataclass(frozen=True)
class ReportFlags:
    """The gates of a report, and its output besides the verdict."""

    require: Require = None
    tables: AllTables = False
    table: TableNames = None
    json_to: Json = None


@dataclass(frozen=True)
class TableFlags:
    """The tables of an evaluation: those to print, and the files and formats of all."""

    tables: AllTables = False
    table: TableNames = None
    json_to: Json = None
    csv_to: Csv = None
    latex_to: Latex = None
    markdown_to: Markdown = None
    per_query_to: PerQuery = None
    html_to: Html = None
