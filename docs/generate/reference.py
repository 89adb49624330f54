"""The reference, from the code: commands with their flags, the Python API, and the rows of every registry."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import typer

import shaketable
from docs.generate.markdown import (
    escape_text,
    format_block,
    format_code,
    format_table,
    join_blocks,
    render_entries,
    render_example,
    render_prose,
    split_sections,
)
from shaketable import testing
from shaketable.api import options
from shaketable.api.listing import describe_parameters
from shaketable.cli.app import app
from shaketable.cli.help import Panel
from shaketable.core import registries
from shaketable.core.registry import Registry
from shaketable.measures.measure_names import EXAMPLE_MEASURES
from shaketable.probes.presets import PRESETS

MAX_EXAMPLE_CHARS = 72
"""An entry shows the first example of its parameters that is not longer."""
MAX_SIGNATURE_CHARS = 88
EMPTY_DEFAULTS = ("", "''", "()")
SECTION_HEADERS = {"Parameters": "parameter", "Attributes": "attribute", "Returns": "returns", "Raises": "raises"}
PLAIN_WORD = re.compile(r"[\w@./:-]+")


@dataclass(frozen=True)
class Catalogue:
    """A page of registry rows: its registries, a sentence, and a command with a place for a spec."""

    title: str
    registries: tuple[Registry, ...]
    introduction: str
    command: str

    def format_command(self, spec: str) -> str:
        """Return the command line that uses a spec."""
        if "'{}'" in self.command:  # inside another spec, the spec is a Python string
            return self.command.replace("'{}'", "{}").replace("{}", repr(spec).replace('"', '\\"'))
        if not PLAIN_WORD.fullmatch(spec):
            spec = shlex.quote(spec) if '"' in spec or "$" in spec else f'"{spec}"'
        return self.command.replace("{}", spec)


CATALOGUES = {
    "rankers": Catalogue(
        "Rankers",
        (registries.RANKERS,),
        "A ranker scores texts for a query. `--ranker NAME=SPEC` names it in tables and gates.",
        "shaketable audit --data sample --ranker {}",
    ),
    "tasks": Catalogue(
        "Tasks",
        (registries.TASKS,),
        "A task is one experiment of an audit. Without `--task`, an audit runs every task that applies to the data.",
        "shaketable audit --data sample --ranker bm25 --task {}",
    ),
    "transforms": Catalogue(
        "Transforms",
        (registries.TRANSFORMS,),
        "A transform changes a text. Query variations, probes, attacks and training use the same transforms.",
        "shaketable vary sample --transform {}",
    ),
    "probes": Catalogue(
        "Probes",
        (registries.PROBES, PRESETS),
        "A probe draws pairs of texts that differ in one property. The last entries are presets: sets of probes.",
        "shaketable probe --data sample --ranker bm25 --probe {}",
    ),
    "recipes": Catalogue(
        "Attack recipes",
        (registries.RECIPES,),
        "A recipe changes a document until it ranks higher or lower. It sees ranks, never scores.",
        "shaketable attack --data sample --ranker bm25 --recipe {}",
    ),
    "goals": Catalogue(
        "Attack goals",
        (registries.GOALS,),
        "A goal says which ranks an attack wants.",
        "shaketable attack --data sample --ranker bm25 --goal {}",
    ),
    "constraints": Catalogue(
        "Attack constraints",
        (registries.CONSTRAINTS,),
        "A constraint rejects changed texts, so that an attack keeps the meaning or the form of a document.",
        "shaketable attack --data sample --ranker bm25 --recipe \"greedy(constraints=('{}',))\"",
    ),
    "detectors": Catalogue(
        "Detectors",
        (registries.DETECTORS,),
        "A detector gives a text a number that is high for attacked texts.",
        "shaketable audit --data sample --ranker bm25 --task \"document_attack(detectors=('{}',))\"",
    ),
    "defences": Catalogue(
        "Defences",
        (registries.DEFENCES,),
        "A defence changes how a ranker is trained.",
        "shaketable train knrm --data sample --model hardened --defence {}",
    ),
    "synonyms": Catalogue(
        "Synonym sources",
        (registries.SYNONYMS,),
        "A synonym source gives the words that may replace a word.",
        "shaketable attack --data sample --ranker bm25 --recipe \"greedy(synonyms='{}')\"",
    ),
    "learners": Catalogue(
        "Learners and writers",
        (registries.LEARNERS, registries.WRITERS),
        "A learner trains a ranker. A writer trains a model that generates queries, titles or answers.",
        "shaketable train {} --data sample --model model",
    ),
    "measures": Catalogue(
        "Measures",
        (registries.MEASURES,),
        "Measures of one query's list come from ir_measures; those below have a class in Shaketable.",
        "shaketable list measures",
    ),
    "training": Catalogue(
        "Objectives and list sources",
        (registries.OBJECTIVES, registries.LIST_SOURCES),
        "The parts of a training plan: the loss, which neural learners take, and the source of the training lists.",
        "shaketable train \"knrm(objective='{}')\" --data sample --model model",
    ),
}
"""The pages of registry rows, by the name of the page."""


def render_reference() -> dict[str, str]:
    """Return the pages of the reference: file name -> Markdown."""
    pages = {f"{name}.md": render_catalogue(catalogue) for name, catalogue in CATALOGUES.items()}
    return {"index.md": render_index(), "commands.md": render_commands(), "python.md": render_python()} | pages


def render_index() -> str:
    """Return the overview of the reference."""
    pages = [("Commands", "commands", list_commands()), ("Python API", "python", shaketable.__all__)]
    pages += [(c.title, name, [row for r in c.registries for row in r]) for name, c in CATALOGUES.items()]
    rows = [[f"[{title}]({name}.md)", str(len([*entries]))] for title, name, entries in pages]
    text = (
        "These pages are generated from the code. `shaketable list KIND` and `shaketable list KIND NAME` print the "
        "same entries in the terminal, with the requirements that your installation lacks. Each example is a spec: "
        "names and Python literals, such as `bm25(k1=0.9)`. The same spec works on the command line, in a TOML file "
        "and from Python."
    )
    return join_blocks("# Reference", text, format_table(["page", "entries"], rows)) + "\n"


def list_commands() -> dict[str, Any]:
    """Return the commands by name."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def render_commands() -> str:
    """Return the page of all commands with their flags."""
    intro = (
        "A flag has the same meaning in every command. `shaketable.toml` can set the flags of an audit. Exit codes: "
        "0 success; 1 a gate failed, a version is worse or a ranker has changed; 2 wrong usage or bad input; 3 the "
        "audits are not comparable; 70 an error in Shaketable."
    )
    commands = list_commands()
    overview = [[f"[`{name}`](#{name})", escape_text(command.help)] for name, command in commands.items()]
    sections = [render_command(name, command) for name, command in commands.items()]
    return join_blocks("# Commands", intro, format_table(["command", "purpose"], overview), *sections) + "\n"


def render_command(name: str, command: Any) -> str:
    """Return the section of a command: its usage, its arguments, and its flags by group."""
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    flags = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    words = [p.metavar if p.required else f"[{p.metavar}]" for p in arguments]
    blocks = [f"## `{name}`", escape_text(command.help)]
    blocks.append(format_block("text", " ".join(["shaketable", name, *words, "[OPTIONS]"])))
    rows = [[format_code(p.metavar), _add_default(p.help or "", "", required=p.required)] for p in arguments]
    blocks.append(format_table(["argument", "meaning"], rows))
    for panel in Panel:
        group = [parameter for parameter in flags if (parameter.rich_help_panel or Panel.GENERAL) == panel]
        blocks.append(format_table([f"{panel} flag", "meaning"], [_render_flag(flag) for flag in group]))
    return join_blocks(*blocks)


def _render_flag(flag: Any) -> list[str]:
    names = [*flag.opts, *flag.secondary_opts]
    shown = " ".join([", ".join(names), flag.metavar or ""]).strip()
    default = "" if flag.default in (None, False, "", []) else str(flag.default)
    return [format_code(shown), _add_default(flag.help or "", default, required=flag.required)]


def _add_default(description: str, default: str, *, required: bool) -> str:
    """Return a description with its default as Markdown."""
    text = escape_text(description.rstrip("."))
    if required:
        return f"{text}. **Required.**"
    return f"{text}. Default: {format_code(default)}." if default not in EMPTY_DEFAULTS else f"{text}."


def render_python() -> str:
    """Return the page of the Python API."""
    public = {name: getattr(shaketable, name) for name in shaketable.__all__}
    functions = {f"st.{name}": thing for name, thing in public.items() if inspect.isfunction(thing)}
    classes = {f"st.{name}": thing for name, thing in public.items() if inspect.isclass(thing)}
    checks = {f"testing.{name}": thing for name, thing in _list_own(testing) if inspect.isfunction(thing)}
    keywords = {f"options.{name}": thing for name, thing in _list_own(options) if inspect.isclass(thing)}
    catalogues = [
        [f"`st.{name}`", _link_catalogue(thing)] for name, thing in public.items() if isinstance(thing, Registry)
    ]
    others = [name for name, thing in public.items() if not (inspect.isroutine(thing) or inspect.isclass(thing))]
    aliases = [
        [f"`st.{name}`", format_code(re.sub(r"\b(?:\w+\.)+", "", str(public[name])))]
        for name in others
        if not isinstance(public[name], Registry)
    ]
    return (
        join_blocks(
            "# Python API",
            format_block("python", "import shaketable as st\nfrom shaketable import testing"),
            "Importing Shaketable reads no files and loads no heavy library; each name is loaded on first use.",
            "## Functions",
            *(render_object(name, thing) for name, thing in functions.items()),
            "## Keyword options",
            "Groups of keyword arguments that several functions take, from `shaketable.api.options`.",
            *(render_object(name, thing) for name, thing in keywords.items()),
            "## Classes",
            *(render_object(name, thing) for name, thing in classes.items()),
            "## Registries",
            "A registry turns a spec into an object (`build`), and an object into a spec (`spec`).",
            format_table(["name", "rows"], catalogues),
            "## Type aliases" if aliases else "",
            format_table(["name", "type"], aliases),
            "## Checks for extensions",
            "Each function raises an error if your ranker, task or other extension breaks the contract.",
            *(render_object(name, thing) for name, thing in checks.items()),
        )
        + "\n"
    )


def _list_own(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public names that a module defines."""
    for name, thing in vars(module).items():
        if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__:
            yield name, thing


def _link_catalogue(registry: Registry) -> str:
    for name, catalogue in CATALOGUES.items():
        if registry in catalogue.registries:
            return f"[{catalogue.title}]({name}.md)"
    raise LookupError(f"no page has the rows of {registry.kind}")


def render_object(name: str, thing: Any) -> str:
    """Return the section of a function or class, from its signature and its numpydoc docstring."""
    sections = split_sections(inspect.getdoc(thing) or "")
    blocks = [f"### `{name}`", format_signature(name, thing), render_prose(sections.pop("", ""))]
    for title, section in sections.items():
        if title == "Examples":
            blocks += ["Example:", render_example(section)]
            continue
        rows = [[format_code(entry), text] for entry, text in render_entries(section)]
        blocks.append(format_table([SECTION_HEADERS[title], "meaning"], rows))
    if inspect.isclass(thing):
        rows = [[format_code(member), escape_text(text)] for member, text in _list_members(thing)]
        blocks.append(format_table(["member", "purpose"], rows))
    return join_blocks(*blocks)


def _list_members(thing: type) -> Iterator[tuple[str, str]]:
    """Yield the public methods and properties of a class, with the first line of their docstrings."""
    for name, member in vars(thing).items():
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_"):
            continue
        if inspect.isfunction(plain):
            given = [
                _format_parameter(p)
                for p in inspect.signature(plain).parameters.values()
                if p.name not in ("self", "cls")
            ]
            yield f"{name}({', '.join(given)})", _read_summary(plain)
        elif isinstance(member, property | cached_property):
            yield name, _read_summary(member)


def _read_summary(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _format_parameter(parameter: inspect.Parameter) -> str:
    """Return a parameter as in source code, where annotations have no quotes."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = stars + parameter.name
    if parameter.annotation is not parameter.empty:
        annotation = parameter.annotation
        text += f": {annotation if isinstance(annotation, str) else getattr(annotation, '__name__', annotation)}"
    if parameter.default is parameter.empty:
        return text
    default = "..." if repr(parameter.default) == "<factory>" else repr(parameter.default)
    return f"{text} = {default}" if ": " in text else f"{text}={default}"


def format_signature(name: str, thing: Any) -> str:
    """Return the signature as a code block; "" for protocols and dictionaries, which are not called."""
    if inspect.isclass(thing) and (getattr(thing, "_is_protocol", False) or issubclass(thing, dict)):
        return ""
    signature = inspect.signature(thing)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(_format_parameter(parameter))
    text = f"{name}({', '.join(parts)})"
    if len(text) > MAX_SIGNATURE_CHARS:
        text = f"{name}(\n    " + ",\n    ".join(parts) + ",\n)"
    returns = signature.return_annotation if inspect.isfunction(thing) else signature.empty
    return format_block("python", text if returns is signature.empty else f"{text} -> {returns}")


def render_catalogue(catalogue: Catalogue) -> str:
    """Return the page of the rows of one or more registries."""
    rows = [(registry, name) for registry in catalogue.registries for name in registry]
    overview = [[f"[`{name}`](#{name})", escape_text(registry.summary(name))] for registry, name in rows]
    examples = ""
    if registries.MEASURES in catalogue.registries:
        lists = [[format_code(name), escape_text(text)] for name, text in EXAMPLE_MEASURES.items()]
        examples = join_blocks(
            format_table(["measure of a list", "meaning"], lists), format_block("sh", "shaketable list measures")
        )
    return (
        join_blocks(
            f"# {catalogue.title}",
            catalogue.introduction,
            examples,
            format_table(["name", "purpose"], overview),
            *(render_row(catalogue, registry, name) for registry, name in rows),
        )
        + "\n"
    )


def render_row(catalogue: Catalogue, registry: Registry, name: str) -> str:
    """Return the section of a row: its docstring, its parameters and an example."""
    make = registry.get_class(name)
    sections = split_sections(inspect.getdoc(make) or "")
    parameters = describe_parameters(registry, name)
    rows = [[format_code(p.name), _add_default(p.description, p.default, required=not p.default)] for p in parameters]
    extra = getattr(make, "extra", "")
    return join_blocks(
        f"## `{name}`",
        render_prose(sections[""], rows=False),
        f"Needs the extra `{extra}`." if isinstance(extra, str) and extra else "",
        format_table(["parameter", "meaning"], rows),
        format_block("sh", catalogue.format_command(choose_example(registry, name)))
        if "{}" in catalogue.command
        else "",
        render_example(sections["Examples"]) if "Examples" in sections else "",
    )


def choose_example(registry: Registry, name: str) -> str:
    """Return a spec of a row that builds; it sets a parameter if one of the class itself has a short example."""
    own = inspect.get_annotations(registry.get_class(name))
    parameters = describe_parameters(registry, name)
    required = [parameter.example for parameter in parameters if not parameter.default]
    short = [p.example for p in parameters if p.name in own and len(p.example) <= MAX_EXAMPLE_CHARS]
    return next(iter([*short, *required]), name)
