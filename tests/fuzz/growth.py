"""A length sweep: every parser of text that others write takes time in proportion to the length of the text.

    python -m tests.fuzz.growth [--target "instruction detector"]

Each case is one unit of text, repeated. A quadratic parser takes 64 times as long for 8 times the text.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from shaketable.attacks.detectors import count_instructions
from shaketable.core.errors import ShaketableError
from shaketable.core.import_object import import_object
from shaketable.core.registries import RANKERS
from shaketable.core.registry import find_named_files
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.letor import read_letor
from shaketable.datasets.query_types.rules import classify_by_rules
from shaketable.datasets.trec import read_topics
from shaketable.measures.measure_names import parse_measure
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.characters import count_suspicious_characters
from shaketable.nlp.sentences import split_sentences, tokenize_sentences
from shaketable.nlp.words import find_word_spans, split_token
from shaketable.rankers.http.dialects import parse_missing_fields, parse_text_limit, wants_model
from shaketable.rankers.lightgbm_format import INTEGERS_PATTERN, NUMBERS_PATTERN
from shaketable.rankers.llm import prompts
from shaketable.report import clean, escape_formula, format_cell, is_percentage
from shaketable.report.files import make_safe_name
from shaketable.report.gates import Threshold, matches_pattern
from shaketable.report.glossary import build_term_pattern
from shaketable.report.tables import escape_latex, escape_markdown
from shaketable.training import seq2seq
from shaketable.transforms.insertion import insert_text
from shaketable.transforms.questions import is_question
from shaketable.transforms.typos import load_misspellings, misspell

SHORT_CHARS, LONG_CHARS = 1_250, 10_000
FLOOR_S = 0.02
"""A text that is parsed faster than this is not timed again: at the largest size a quadratic parser is far slower."""
MAX_RATIO = 3.0 * LONG_CHARS / SHORT_CHARS
"""How much longer the longest text may take than the shortest: three times what a linear parser takes."""
REPEATS = 3

UNITS = (
    " ", "\n", "\t", "\r\n", "\n ", "\u00a0", "\u3000", "a", "A", "1", "0", "_", "#", "##", "# ", "<", "<a", "<a ",
    "</a", "<a>", "< ", ">", "(", ")", "()", "a(", "@", "@1", " @ ", "[", "[ ", "[1", "[ 1", "{", "{a", "'",
    '"', "\\'", "\\", ".", "..", ". ", "a.", "1.", "1,", "1:", "a-", "-", "--", "a'", "n't", "*", "a*", ":", "::", "a:",
    "=", "a=", "%", "1%", "1 %", "&", "&a", "|", "`", "http://", "www.", "a@", "a@a.", "e\u0301", "\u0301", "\u200b",
    "a\u200b", "a\u0430", "é", "東", "🙂", "ignore ", "ignore\n", "ignore all ", "the document is ", "you are a ",
    "relevance ", "system", "system ", "system :", "Number", "Number ", "Topic :", "what ", "what is ", "how ",
    "where ", "docid ", "docid=", "max 1", "model ", "model is required ", '"body", ', "a is required", "Relevant: ",
    " Relevant:", "can you please ", "<|", "<|a", "</think>", "<think>", ">=", "a >", "e5", "+", "-1 ", "1 ", "1.1e5 ",
    "ſ", "İ",
)  # fmt: skip
TAILS = ("", "!")


@dataclass(frozen=True)
class Sweep:
    """A parser of text, and a template of its input: `{}` stands for the long text."""

    name: str
    parse: Callable[[str], object]
    templates: tuple[str, ...] = ("{}",)


def _read_file(read: Callable[[Path], object], text: str) -> object:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        file.write(text)
        file.flush()
        return read(Path(file.name))


def _insert_in_the_middle(text: str) -> object:
    return insert_text(text, "x", "middle", make_item_rng(0, "growth"))


def _misspell(text: str) -> object:
    return misspell(text, load_misspellings(""), frozenset(), make_item_rng(0, "growth"))


def _read_refusal(text: str) -> object:
    return parse_text_limit(422, text, 100), parse_missing_fields(text), wants_model(text)


def _read_answer(text: str) -> object:
    text = prompts.strip_reasoning(text)
    return prompts.read_ranking(text, 20), prompts.read_choice(text, 20), prompts.read_letter(text)


SGML = "<top>\n<num> Number: 1\n<title> tides\n</top>\n"
SWEEPS = {
    sweep.name: sweep
    for sweep in (
        Sweep("instruction detector", count_instructions),
        Sweep("suspicious characters", count_suspicious_characters),
        Sweep(
            "SGML topics",
            partial(_read_file, read_topics),
            ("{}", "<top>{}", *(SGML.replace(place, place + "{}") for place in ("<num>", "Number: 1", "<title>", "<"))),
        ),
        Sweep("measure", parse_measure, ("{}", "nDCG{}", "nDCG({})@10", "RR(rel={})", "AP@{}", "a:b({})")),
        Sweep("object", import_object, ("math:{}", "{}.py:x", "math:sin({})")),
        Sweep("ranker", RANKERS.build, ("{}", "bm25({})", "bm25(k1={})", "http://{}", "run:{}")),
        Sweep("files in a spec", find_named_files, ("{}", "da('{}')", "da('{}")),
        Sweep(
            "rows of features", partial(_read_file, read_letor), ("1 qid:1 {}", "1 qid:1 1:2 # {}", "# features: {}")
        ),
        Sweep("numbers of a tree", lambda text: (INTEGERS_PATTERN.fullmatch(text), NUMBERS_PATTERN.fullmatch(text))),
        Sweep("analyzer", Analyzer()),
        Sweep("sentences", lambda text: (split_sentences(text), tokenize_sentences(text))),
        Sweep("words", lambda text: (find_word_spans(text), split_token(text), _misspell(text))),
        Sweep("query types", classify_by_rules),
        Sweep("questions", is_question, ("{}", "can you {}")),
        Sweep("insertion", _insert_in_the_middle, ("{}", "a {} b")),
        Sweep("refusal of an endpoint", _read_refusal),
        Sweep("answer of a language model", _read_answer),
        Sweep("log odds", lambda text: prompts.read_log_odds(text, {})),
        Sweep("template", lambda text: prompts.fill_template(text, {"query": "x"})),
        Sweep("prompt of a pairs file", lambda text: seq2seq._PROMPT_END.sub("", text)),
        Sweep("rule", Threshold.parse),
        Sweep("pattern of a rule", lambda text: matches_pattern("a*a*a*a*a*a*b", text)),
        Sweep("stars of a rule", lambda text: matches_pattern(text, "a" * 200), ("{}", "{}b")),
        Sweep("cell", lambda text: (clean(text), escape_formula(text), format_cell(text), is_percentage(text))),
        Sweep("file name", make_safe_name),
        Sweep("terms of the page", build_term_pattern().findall),
        Sweep("Markdown and LaTeX", lambda text: (escape_markdown(text), escape_latex(text))),
    )
}


def list_texts(sweep: Sweep, units: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each template with each unit and each tail."""
    for template in sweep.templates:
        for unit in units:
            for tail in TAILS:
                yield template, unit, tail


def measure_growth(sweep: Sweep, template: str, unit: str, tail: str) -> float:
    """Return how much longer the longest text takes than the shortest; 0 if the longest is parsed in no time.

    Each repetition parses another text, so that no cache answers, and the fastest counts, so that a busy machine does
    not matter.
    """
    if _time(sweep, template, unit, tail, LONG_CHARS, 0) < FLOOR_S:
        return 0.0
    short, long = (
        min(_time(sweep, template, unit, tail, size, repeat) for repeat in range(1, REPEATS + 1))
        for size in (SHORT_CHARS, LONG_CHARS)
    )
    return long / short if long >= FLOOR_S else 0.0


def _time(sweep: Sweep, template: str, unit: str, tail: str, size: int, repeat: int) -> float:
    head, _, rest = template.partition("{}")
    text = f"{head}{unit * (size // len(unit))}{tail}{'x' * repeat}{rest}"
    start = time.thread_time()  # of the processor, so that other processes do not count
    with suppress(ShaketableError):
        sweep.parse(text)
    return time.thread_time() - start


def find_super_linear(sweep: Sweep, units: Sequence[str] = UNITS) -> list[str]:
    """Return a line for each text whose time grows faster than its length allows."""
    growths = ((text, measure_growth(sweep, *text)) for text in list_texts(sweep, units))
    return [f"{sweep.name}: {text!r} takes {ratio:.0f} times as long" for text, ratio in growths if ratio > MAX_RATIO]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.growth", description=__doc__)
    parser.add_argument("--target", action="append", choices=list(SWEEPS), help="one of them only; repeat it")
    found = []
    for name in parser.parse_args().target or SWEEPS:
        start = time.perf_counter()
        lines = find_super_linear(SWEEPS[name])
        print(f"{name:28} {time.perf_counter() - start:6.1f} s, {len(lines)} super-linear", *lines[:8], sep="\n    ")
        found += lines
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
