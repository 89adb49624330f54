"""Text <-> object: what a command line reads, a result stores and a table shows is one string.

A catalogue maps names to classes, written "module:Class" so that listing a name imports nothing. A text such as
"rm3(base=ql(mu=500), docs=10)" is read with `ast`: names of the catalogue and Python literals, nothing else.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shaketable.errors import BadInput, UnknownName


@dataclass(frozen=True)
class Catalogue:
    """The one list of a kind of thing: its names, its classes, and short ways to write some of them.

    A shorthand is a pattern and a name: what the pattern's group catches becomes the first parameter.
    """

    kind: str
    rows: dict[str, str]
    shorthands: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def load(self, name: str) -> type[Any]:
        """The class behind a name."""
        if name not in self.rows:
            raise UnknownName(self.kind, name, self.rows)
        return _locate(self.rows[name])

    def summary(self, name: str) -> str:
        """The first line of the class's docstring."""
        return (self.load(name).__doc__ or "").strip().partition("\n")[0]

    def build(self, text: str) -> Any:
        """The object that a text describes; `spec` is its inverse."""
        text = text.strip()
        for pattern, name in self.shorthands.items():
            if match := re.fullmatch(pattern, text):
                return self.load(name)(match.group(1))
        text = re.sub(r"^[\w-]+", lambda name: name.group().replace("-", "_"), text)  # query-attack is query_attack
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError) as error:
            if near := re.match(r"\w+", text):
                self.load(near.group())
            raise BadInput(f"cannot read the {self.kind} {text!r}: write NAME or NAME(parameter=value)") from error
        return self._value(tree, text)

    def spec(self, thing: Any) -> str:
        """The text that builds an equal object: the name, and the parameters that are not the default."""
        target = f"{type(thing).__module__}:{type(thing).__qualname__}"
        name = next((name for name, row in self.rows.items() if row == target), None)
        if name is None:
            return str(getattr(thing, "name", type(thing).__name__))
        given = [
            f"{f.name}={self._literal(value)}"
            for f in dataclasses.fields(thing)
            if f.init and (value := getattr(thing, f.name)) != _default(f)
        ]
        if len(given) == 1 and (short := self._short(name, thing)):
            return short
        return f"{name}({', '.join(given)})" if given else name

    def _short(self, name: str, thing: Any) -> str | None:
        """The shorthand for a thing whose first parameter is all there is to say."""
        first = getattr(thing, dataclasses.fields(thing)[0].name)
        for pattern, stands_for in self.shorthands.items():
            text = pattern.partition("(")[0] + str(first)
            if stands_for == name and re.fullmatch(pattern, text) and self.build(text) == thing:
                return text
        return None

    def _literal(self, value: Any) -> str:
        if dataclasses.is_dataclass(value):
            return self.spec(value)
        if isinstance(value, tuple):
            return f"({', '.join(map(self._literal, value))}{',' if len(value) == 1 else ''})"
        return repr(value)

    def _value(self, node: ast.expr, text: str) -> Any:
        match node:
            case ast.Name(id=name):
                return self._make(name, [], {}, text)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                named = {k.arg: self._parameter(k.value, text) for k in keywords if k.arg}
                if len(named) == len(keywords):
                    return self._make(name, [self._parameter(a, text) for a in args], named, text)
        raise BadInput(f"cannot read the {self.kind} {text!r}: write NAME or NAME(parameter=value)")

    def _parameter(self, node: ast.expr, text: str) -> Any:
        try:
            return ast.literal_eval(node)
        except ValueError:
            if isinstance(node, ast.Tuple | ast.List):
                return tuple(self._parameter(item, text) for item in node.elts)
            return self._value(node, text)

    def _make(self, name: str, args: list[Any], named: dict[str, Any], text: str) -> Any:
        make = self.load(name)
        try:
            return make(*args, **named)
        except TypeError as error:
            known = ", ".join(f.name for f in dataclasses.fields(make) if f.init) or "none"
            raise BadInput(f"{self.kind} {text!r}: wrong parameters for {name}; it takes: {known}") from error


def _locate(target: str) -> type[Any]:
    module, _, name = target.partition(":")
    found: type[Any] = getattr(importlib.import_module(module), name)
    return found


def _default(f: dataclasses.Field[Any]) -> Any:
    return f.default if f.default_factory is dataclasses.MISSING else f.default_factory()


RANKERS = Catalogue(
    "ranker",
    {
        "bm25": "shaketable.rank.lexical:BM25",
        "ql": "shaketable.rank.lexical:QL",
        "ql_jm": "shaketable.rank.lexical:QLJM",
        "rm3": "shaketable.rank.feedback:RM3",
        "doct5query": "shaketable.rank.expansion:DocT5Query",
        "http": "shaketable.rank.remote:HTTP",
        "python": "shaketable.rank.python:Python",
        "run": "shaketable.rank.runfile:RunFile",
        "saved": "shaketable.rank.saved:Saved",
        "dense": "shaketable.rank.neural:Dense",
        "hf": "shaketable.rank.neural:HF",
        "st": "shaketable.rank.neural:ST",
        "t5": "shaketable.rank.neural:T5",
    },
    shorthands={
        r"(https?://.+)": "http",
        r"run:(.+)": "run",
        r"hf:(.+)": "hf",
        r"st:(.+)": "st",
        r"t5:(.+)": "t5",
        r"([A-Za-z_][\w.]*:[A-Za-z_][\w.]*)": "python",
        r"([^()]*/[^()]*)": "saved",
    },
)

LEARNERS = Catalogue(
    "learner",
    {
        "prank": "shaketable.train.linear:PRank",
        "ranksvm": "shaketable.train.linear:RankSVM",
        "adarank": "shaketable.train.linear:AdaRank",
        "afs": "shaketable.train.linear:AFS",
        "gbrt": "shaketable.train.boosted:GBRT",
        "lambdamart": "shaketable.train.lambdamart:LambdaMART",
        "lgbm": "shaketable.train.lgbm:LGBM",
        "bert": "shaketable.train.neural:Bert",
        "colbert": "shaketable.train.neural:ColBERT",
        "dense": "shaketable.train.neural:Dense",
        "monot5": "shaketable.train.neural:MonoT5",
        "prop": "shaketable.train.neural:PROP",
        "epic": "shaketable.train.neural:EPIC",
        "dssm": "shaketable.train.neural:DSSM",
        "drmm": "shaketable.train.neural:DRMM",
        "knrm": "shaketable.train.neural:KNRM",
        "conv_knrm": "shaketable.train.neural:ConvKNRM",
        "duet": "shaketable.train.neural:Duet",
    },
)

EDITS = Catalogue(
    "edit",
    {
        # query attack (paper 000)
        "char_attack": "shaketable.edit.attack:CharAttack",
        "word_attack": "shaketable.edit.attack:WordAttack",
        # misspelling (paper 004, then ours)
        "neighb_char_swap": "shaketable.edit.misspelling:NeighbCharSwap",
        "random_char_sub": "shaketable.edit.misspelling:RandomCharSub",
        "qwerty_char_sub": "shaketable.edit.misspelling:QwertyCharSub",
        "real_typo": "shaketable.edit.misspelling:RealTypo",
        "lookalike_char": "shaketable.edit.misspelling:LookalikeChar",
        "phonetic": "shaketable.edit.misspelling:Phonetic",
        "drop_letter": "shaketable.edit.misspelling:DropLetter",
        "double_letter": "shaketable.edit.misspelling:DoubleLetter",
        "split_word": "shaketable.edit.misspelling:SplitWord",
        "join_words": "shaketable.edit.misspelling:JoinWords",
        # naturality
        "remove_stop_words": "shaketable.edit.naturality:RemoveStopWords",
        "desc_to_title": "shaketable.edit.generated:DescToTitle",
        "to_keywords": "shaketable.edit.naturality:ToKeywords",
        "to_question": "shaketable.edit.naturality:ToQuestion",
        "change_case": "shaketable.edit.naturality:ChangeCase",
        "change_punctuation": "shaketable.edit.naturality:ChangePunctuation",
        # ordering
        "random_order_swap": "shaketable.edit.ordering:RandomOrderSwap",
        # paraphrasing
        "back_translation": "shaketable.edit.generated:BackTranslation",
        "paraphrase": "shaketable.edit.generated:Paraphrase",
        "word_embed_syn_swap": "shaketable.edit.paraphrasing:WordEmbedSynSwap",
        "wordnet_syn_swap": "shaketable.edit.paraphrasing:WordNetSynSwap",
        "syn_swap": "shaketable.edit.paraphrasing:SynSwap",
    },
)

MEASURES = Catalogue(
    "measure",
    {
        "vnap": "shaketable.measure.variance:VNAP",
        "gmap": "shaketable.measure.variance:GMAP",
        "worst_area": "shaketable.measure.variance:WorstArea",
        "top_change": "shaketable.measure.change:TopChange",
        "kendall": "shaketable.measure.change:Kendall",
        "rbo": "shaketable.measure.change:RBO",
        "overlap": "shaketable.measure.change:Overlap",
    },
)

TASKS = Catalogue(
    "task",
    {
        "variance": "shaketable.task.variance:Variance",
        "risk": "shaketable.task.risk:Risk",
        "agreement": "shaketable.task.agreement:Agreement",
        "query_attack": "shaketable.task.query_attack:QueryAttack",
        "query_variation": "shaketable.task.query_variation:QueryVariation",
        "fusion": "shaketable.task.fusion:Fusion",
    },
)
