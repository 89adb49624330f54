"""Prose and names: no words that hide the subject of a sentence, no metaphors, no participles as function names."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cases import check_each

ROOT = Path(__file__).resolve().parent.parent
BANNED = re.compile(
    r"(?<![a-z])(whoever|nobody|somebody|houses?|rooms?|doors?|roads?|journeys?)(?![a-z])", re.IGNORECASE
)
"""Banned as words of prose and as parts of names of modules, classes and functions."""
PARTICIPLE = re.compile(
    r"_?(?!(feed|seed|embed)$)[a-z]+ed"
    r"|_?(built|drawn|found|given|held|kept|left|lost|made|met|said|seen|sent|shown|spent|taken|told|written)"
)
"""Banned as the name of a function, which is a verb."""
TEXTS_AS_DATA = {
    "src/shaketable/nlp/irregular_forms.py": "a word list",
    "src/shaketable/nlp/pos_lexicon.py": "a word list",
    "src/shaketable/transforms/questions.py": "a pattern of questions",
    "src/shaketable/rankers/llm/prompts.py": "prompts for language models",
    "src/shaketable/attacks/injection.py": "harmless sentences",
    "src/shaketable/tasks/llm_ranker.py": "filler sentences of a document",
}
"""Modules with texts that rankers read, with the reason why these are not our prose."""
SOURCES = sorted((ROOT / "src").rglob("*.py"))
SCRIPTS = [
    path for name in ("benchmarks", "weights", "examples", ".ci") for path in sorted((ROOT / name).rglob("*.py"))
]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if "evidence" not in path.parts),
]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def list_docstrings(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield docstrings, also those of constants."""
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def list_strings(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def list_messages(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the messages of assertions."""
    for node in nodes:
        if isinstance(node, ast.Assert) and isinstance(node.msg, ast.Constant):
            yield str(node.msg.value)


def list_comments(code: str) -> Iterator[str]:
    """Yield the comments of code that has a banned word somewhere; other code needs no slow tokenizer."""
    if not BANNED.search(code):
        return
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def list_names(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def list_functions(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the names of functions, but not of properties and fixtures, which are nouns."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            yield node.name


def find_banned(*texts: str) -> list[str]:
    return [text[max(0, match.start() - 60) : match.end() + 60] for text in texts for match in BANNED.finditer(text)]


def check_words(path: Path) -> None:
    """Check all strings, comments and names of a module."""
    code = path.read_text()
    nodes = list(ast.walk(ast.parse(code)))
    texts = list_docstrings(nodes) if name_of(path) in TEXTS_AS_DATA else list_strings(nodes)
    assert find_banned(path.stem, *texts, *list_comments(code), *list_names(nodes)) == []


def test_words_of_the_package():
    check_each({name_of(path): path for path in SOURCES}, check_words)


def test_words_of_the_scripts():
    check_each({name_of(path): path for path in SCRIPTS}, check_words)


def check_verbs(nodes: Sequence[ast.AST]) -> None:
    assert list(filter(PARTICIPLE.fullmatch, list_functions(nodes))) == []


def test_functions_of_scripts_are_verbs():
    def check(path: Path) -> None:
        check_verbs(list(ast.walk(ast.parse(path.read_text()))))

    check_each({name_of(path): path for path in SCRIPTS}, check)


def test_words_and_functions_of_the_tests():
    def check(path: Path) -> None:
        code = path.read_text()
        nodes = list(ast.walk(ast.parse(code)))
        check_verbs(nodes)
        texts = (*list_docstrings(nodes), *list_messages(nodes), *list_comments(code))
        assert find_banned(path.stem, *texts, *list_names(nodes)) == []

    check_each({name_of(path): path for path in TESTS}, check)


def test_words_of_the_pages():
    def check(path: Path) -> None:
        prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)  # output quotes texts of the sample
        assert find_banned(prose) == []

    check_each({name_of(path): path for path in PAGES}, check)
