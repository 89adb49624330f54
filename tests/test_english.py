"""Prose and names: no words that hide the subject of a sentence, no metaphors, no participles as function names."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
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


def list_docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield docstrings, also those of constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def list_strings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def list_messages(tree: ast.Module) -> Iterator[str]:
    """Yield the messages of assertions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and isinstance(node.msg, ast.Constant):
            yield str(node.msg.value)


def list_comments(code: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def list_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def list_functions(tree: ast.Module) -> Iterator[str]:
    """Yield the names of functions, but not of properties and fixtures, which are nouns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            yield node.name


def find_banned(*texts: str) -> list[str]:
    return [text[max(0, match.start() - 60) : match.end() + 60] for text in texts for match in BANNED.finditer(text)]


def check_words(path: Path) -> None:
    """Check all strings, comments and names of a module."""
    code = path.read_text()
    tree = ast.parse(code)
    texts = list_docstrings(tree) if name_of(path) in TEXTS_AS_DATA else list_strings(tree)
    assert find_banned(path.stem, *texts, *list_comments(code), *list_names(tree)) == []


def test_words_of_the_package():
    check_each({name_of(path): path for path in SOURCES}, check_words)


def test_words_of_the_scripts():
    check_each({name_of(path): path for path in SCRIPTS}, check_words)


def test_functions_of_scripts_and_tests_are_verbs():
    def check(path: Path) -> None:
        assert list(filter(PARTICIPLE.fullmatch, list_functions(ast.parse(path.read_text())))) == []

    check_each({name_of(path): path for path in (*SCRIPTS, *TESTS)}, check)


def test_words_of_the_tests():
    def check(path: Path) -> None:
        code = path.read_text()
        tree = ast.parse(code)
        texts = (*list_docstrings(tree), *list_messages(tree), *list_comments(code))
        assert find_banned(path.stem, *texts, *list_names(tree)) == []

    check_each({name_of(path): path for path in TESTS}, check)


def test_words_of_the_pages():
    def check(path: Path) -> None:
        prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)  # output quotes texts of the sample
        assert find_banned(prose) == []

    check_each({name_of(path): path for path in PAGES}, check)
