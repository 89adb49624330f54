"""Text <-> object: what a command line reads, a result stores and a table shows is one string.

A catalogue maps names to classes, written "module:Class" so that listing a name imports nothing. A text such as
"rm3(base=ql(mu=500), docs=10)" is read with `ast`: names of the catalogue and Python literals, nothing else. What is
in no catalogue is written with its module, "package.module:Class(k=2)"; a package that is installed may add rows of its
own by entry points of the group "shaketable.KINDs", for example "shaketable.rankers".
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import os
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from shaketable.errors import BadInput, UnknownName, users_code
from shaketable.files import home
from shaketable.objects import OBJECT, located

LONGEST = 10_000
"""Characters of a text that describes a thing; nobody writes more, and Python's reader has trouble with far more."""
QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
"""A string inside a text, as Python writes it."""


@dataclass(frozen=True)
class Catalogue:
    """The one list of a kind of thing: its names, its classes, and short ways to write some of them.

    A shorthand is a pattern and a name: what the pattern's group catches becomes the first parameter. `modules` are
    modules whose public classes with a `kind` are rows by that name. `function` names the class that makes a thing of
    this kind out of a plain function.
    """

    kind: str
    own: dict[str, str]
    shorthands: dict[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    function: str = ""

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    @cached_property
    def rows(self) -> dict[str, str]:
        """name -> "module:Class": ours, and those of installed packages, which cannot take a name of ours."""
        from importlib.metadata import entry_points

        rows = dict(self.own)
        for module in self.modules:
            classes = [c for c in vars(importlib.import_module(module)).values() if inspect.isclass(c)]
            rows |= {vars(c)["kind"]: f"{module}:{c.__name__}" for c in classes if "kind" in vars(c)}
        others = {point.name: point.value for point in entry_points(group=f"shaketable.{self.kind}s")}
        return others | rows

    def class_of(self, name: str) -> type[Any]:
        """The class behind a name."""
        if target := self.own.get(name):
            return _class(target)
        if name not in self.rows:
            raise UnknownName(self.kind, name, self.rows)
        return _class(self.rows[name])

    def summary(self, name: str) -> str:
        """The first line of the class's docstring, or why a row of another package cannot be had."""
        try:
            return (self.class_of(name).__doc__ or "").strip().partition("\n")[0]
        except BadInput as error:
            return str(error)

    def build(self, text: str) -> Any:
        """The object that a text describes; `spec` is its inverse."""
        text = text.strip()
        if len(text) > LONGEST:
            raise BadInput(f"a {self.kind} is described in at most {LONGEST:,} characters; this text has {len(text):,}")
        for pattern, name in self.shorthands.items():
            if match := re.fullmatch(pattern, text):
                return self._make(name, [match.group(1)], {}, text)
        if re.fullmatch(OBJECT, text, re.DOTALL):
            return self._foreign(text)
        text = re.sub(r"^[\w-]+", lambda name: name.group().replace("-", "_"), text)  # query-attack is query_attack
        try:
            return self._value(ast.parse(text, mode="eval").body, text)
        except (SyntaxError, ValueError) as error:
            if near := re.match(r"\w+(?![\w.:])", text):
                self.class_of(near.group())
            raise self._unreadable(text) from error
        except (RecursionError, MemoryError) as error:
            raise BadInput(f"the {self.kind} {text[:60]!r}... is nested too deeply to be read") from error

    def spec(self, thing: Any) -> str:
        """The text that builds an equal object: the name, and the parameters that are not the default.

        A thing that is in no catalogue is written with its module and its parameters, so that two of them that differ
        are two texts.
        """
        target = f"{type(thing).__module__}:{type(thing).__qualname__}"
        name = next((name for name, row in self.rows.items() if row == target), target)
        given = [f"{key}={self._literal(value)}" for key, value in _parameters(thing).items()]
        if len(given) == 1 and name != target and (short := self._short(name, thing)):
            return short
        return f"{name}({', '.join(given)})" if given else name

    def _short(self, name: str, thing: Any) -> str | None:
        """The shorthand for a thing whose first parameter is all there is to say."""
        if not dataclasses.is_dataclass(thing):
            return None
        first = getattr(thing, dataclasses.fields(thing)[0].name)
        for pattern, stands_for in self.shorthands.items():
            text = pattern.partition("(")[0] + str(first)
            if stands_for == name and re.fullmatch(pattern, text) and self.build(text) == thing:
                return text
        if name == self.function and re.fullmatch(OBJECT, str(first)):
            return str(first)
        return None

    def _literal(self, value: Any) -> str:
        if dataclasses.is_dataclass(value) and not inspect.isclass(value):
            return self.spec(value)
        if isinstance(value, tuple):
            return f"({', '.join(map(self._literal, value))}{',' if len(value) == 1 else ''})"
        if inspect.isroutine(value) or inspect.isclass(value):
            return f"{value.__module__}:{value.__qualname__}"
        text = repr(value)
        return self.spec(value) if " at 0x" in text else text  # where it is in memory tells nobody anything

    def _value(self, node: ast.expr, text: str) -> Any:
        match node:
            case ast.Name(id=name):
                return self._make(name, [], {}, text)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                named = {k.arg: self._parameter(k.value, text) for k in keywords if k.arg}
                if len(named) == len(keywords):
                    return self._make(name, [self._parameter(a, text) for a in args], named, text)
        raise self._unreadable(text)

    def _parameter(self, node: ast.expr, text: str) -> Any:
        try:
            value = ast.literal_eval(node)
            repr(value)  # a ValueError of a number that Python reads in hexadecimal, and will not write
            return value
        except (ValueError, TypeError):
            if isinstance(node, ast.Tuple | ast.List):
                return tuple(self._parameter(item, text) for item in node.elts)
            return self._value(node, text)

    def _make(self, name: str, args: list[Any], named: dict[str, Any], text: str) -> Any:
        make = self.class_of(name)
        if not dataclasses.is_dataclass(make):  # a class of somebody else's
            return _called(make, args, named, f"{self.kind} {name}")
        known = [f.name for f in dataclasses.fields(make) if f.init]
        plain = [f.name for f in dataclasses.fields(make) if f.init and not f.kw_only]
        takes = f"it takes: {', '.join(known) or 'none'}"
        if len(args) > len(plain) or named.keys() - set(known) or named.keys() & set(plain[: len(args)]):
            raise BadInput(f"{self.kind} {text[:200]!r}: wrong parameters for {name}; {takes}")
        given = dict(zip(plain, args, strict=False)) | named
        if lacking := [f.name for f in dataclasses.fields(make) if f.init and f.name not in given and _needed(f)]:
            raise BadInput(f"{self.kind} {text[:200]!r}: {name} needs {', '.join(lacking)}; {takes}")
        hints = _hints(make)
        for key, value in given.items():
            if not fits(value, hints.get(key, Any)):
                should = described(hints[key])
                raise BadInput(f"{self.kind} {name}: {key} should be {should}, not {_shown(value)}")
            given[key] = _settled(value, hints.get(key, Any))
        return make(**given)

    def _foreign(self, text: str) -> Any:
        """What a text with a module in it names: an object, a class without parameters, or a function."""
        thing = located(text)
        if inspect.isclass(thing):
            thing = _called(thing, [], {}, text)
        if inspect.isroutine(thing) and self.function:
            return self.class_of(self.function)(text)
        return thing

    def _unreadable(self, text: str) -> BadInput:
        return BadInput(f"cannot read the {self.kind} {text[:200]!r}: write NAME or NAME(parameter=value)")


def _class(target: str) -> type[Any]:
    module, _, name = target.partition(":")
    try:
        thing: type[Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        if target.startswith("shaketable."):
            raise
        raise BadInput(f"{target}, which an installed package offers, cannot be imported ({error})") from error
    return thing


def _called(make: Any, args: Sequence[Any], named: Mapping[str, Any], what: str) -> Any:
    with users_code(f"{what} cannot be made with these parameters"):
        return make(*args, **named)


def _parameters(thing: Any) -> dict[str, Any]:
    """The parameters of a thing that are not the default: a dataclass's fields, or what its constructor is given."""
    if dataclasses.is_dataclass(thing):
        values = ((f.name, getattr(thing, f.name), _default(f)) for f in dataclasses.fields(thing) if f.init)
    else:
        try:
            taken = inspect.signature(type(thing)).parameters.values()
        except (TypeError, ValueError):
            return {}
        values = ((p.name, getattr(thing, p.name, p.default), p.default) for p in taken)
    return {name: value for name, value, default in values if not _same(value, default)}


def _same(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except Exception:  # arrays have many answers
        return value is default


def _default(f: dataclasses.Field[Any]) -> Any:
    return f.default if f.default_factory is dataclasses.MISSING else f.default_factory()


def _needed(f: dataclasses.Field[Any]) -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def _hints(make: type[Any]) -> dict[str, Any]:
    """The types of a class's fields; one that can be named only while types are checked is not looked at."""
    try:
        return typing.get_type_hints(make)
    except NameError:
        return {}


def fits(value: Any, hint: Any) -> bool:
    """Is a value of the type that a field is declared with?

    >>> fits(2, float), fits(True, int), fits("x", float), fits((1, 2), tuple[float, ...]), fits(None, int | None)
    (True, False, False, True, True)
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is typing.Literal:
        return value in arguments
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float):
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
    if origin is tuple:
        items = isinstance(value, tuple | list)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return items and all(fits(item, arguments[0]) for item in value)
        return items and len(value) == len(arguments) and all(map(fits, value, arguments))
    try:
        return not inspect.isclass(origin or hint) or isinstance(value, origin or hint)
    except TypeError:  # a protocol that cannot be asked
        return True


def described(hint: Any) -> str:
    """A field's type in words.

    >>> described(int), described(tuple[str, ...]), described(str | None)
    ('a whole number', 'texts in parentheses, such as ("a", "b")', 'a text or None')
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(described(one) for one in arguments)
    if origin is typing.Literal:
        return " or ".join(map(repr, arguments))
    if origin is tuple:
        words = {str: 'texts in parentheses, such as ("a", "b")', float: "numbers in parentheses, such as (1, 5)"}
        words[int] = "whole numbers in parentheses, such as (1, 5)"
        return words.get(arguments[0], "values in parentheses") if arguments else "values in parentheses"
    words = {int: "a whole number", float: "a number", str: "a text", bool: "True or False", type(None): "None"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def _settled(value: Any, hint: Any) -> Any:
    """A list where a tuple is declared becomes one: only tuples can be part of a value."""
    wants_tuple = any(typing.get_origin(one) is tuple for one in (hint, *typing.get_args(hint)))
    return tuple(value) if isinstance(value, list) and wants_tuple else value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


ENDPOINT = r"https?://.+|(?:localhost|[\w-]+(?:\.[\w-]+)*|\[[0-9a-f:]+\]):\d+(?:/.*)?|localhost/.*"
"""How the address of an endpoint looks; without a scheme it has a port, or is on this machine."""


def files_named(text: str) -> list[Path]:
    """The files that a text speaks of, or a text inside it: itself, or behind a colon; of a folder all that it holds.

    A folder is one that is written with a slash, as model folders are. What is not there is not named.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     source = f"listed({file.name!r})"
    ...     files_named(f"da(synonyms={source!r})") == [Path(file.name)]
    True
    """
    words = filter(None, [text, text.partition(":")[2], *text.split(os.pathsep)])
    places = [os.path.join(place, word) for word in words for place in ("", home() / "resources")]
    found = {Path(place) for place in places if os.path.isfile(place)}
    folders = [Path(place) for place in places if "/" in place and os.path.isdir(place)]
    found |= {file for folder in folders for file in folder.rglob("*") if file.is_file()}
    for quoted in QUOTED.findall(text):
        with suppress(SyntaxError, ValueError):  # a quote may be part of a name
            found |= set(files_named(ast.literal_eval(quoted)))
    return sorted(found)


RANKERS = Catalogue(
    "ranker",
    {
        "bm25": "shaketable.rankers.lexical:BM25",
        "ql": "shaketable.rankers.lexical:QL",
        "ql_jm": "shaketable.rankers.lexical:QLJM",
        "rm3": "shaketable.rankers.feedback:RM3",
        "doct5query": "shaketable.rankers.expansion:DocT5Query",
        "http": "shaketable.rankers.remote:HTTP",
        "llm": "shaketable.rankers.llm.model:LLM",
        "python": "shaketable.rankers.python:Python",
        "run": "shaketable.rankers.runfile:RunFile",
        "saved": "shaketable.rankers.saved:Saved",
        "smoothed": "shaketable.rankers.smoothed:Smoothed",
        "masked": "shaketable.rankers.smoothed:Masked",
        "dense": "shaketable.rankers.neural:Dense",
        "hf": "shaketable.rankers.neural:HF",
        "st": "shaketable.rankers.neural:ST",
        "t5": "shaketable.rankers.neural:T5",
        "guarded": "shaketable.defend.guarded:Guarded",
    },
    shorthands={
        r"llm:(.+)": "llm",
        rf"({ENDPOINT})": "http",
        r"run:(.+)": "run",
        r"hf:(.+)": "hf",
        r"st:(.+)": "st",
        r"t5:(.+)": "t5",
        rf"({OBJECT})": "python",
        r"([^()]*/[^()]*)": "saved",
    },
)

LEXICAL = tuple(name for name, row in RANKERS.own.items() if row.startswith("shaketable.rankers.lexical:"))
"""The rankers that are formulas: what is learned of them is their parameters."""

LEARNERS = Catalogue(
    "learner",
    {
        "prank": "shaketable.learners.linear:PRank",
        "ranksvm": "shaketable.learners.linear:RankSVM",
        "adarank": "shaketable.learners.linear:AdaRank",
        "afs": "shaketable.learners.linear:AFS",
        "gbrt": "shaketable.learners.boosted:GBRT",
        "lambdamart": "shaketable.learners.lambdamart:LambdaMART",
        "lgbm": "shaketable.learners.lgbm:LGBM",
        "lexical": "shaketable.learners.lexical:LexicalLearner",
    },
    shorthands={rf"((?:{'|'.join(LEXICAL)})(?:\(.*\))?)": "lexical"},
    modules=("shaketable.learners.neural",),  # a class for each net
)

WRITERS = Catalogue(
    "writer",
    {},
    modules=("shaketable.learners.seq2seq",),  # a class for each kind of pairs
)
"""What `train` makes a checkpoint of that writes texts: it is no ranker, but edits and rankers are made with it."""

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
        # documents (paper 001)
        "add_queries": "shaketable.edit.expand:AddQueries",
        # your own
        "function": "shaketable.edit.function:FunctionEdit",
    },
    function="function",
)

MEASURES = Catalogue(
    "measure",
    {
        "vnap": "shaketable.measure.variance:VNAP",
        "vap": "shaketable.measure.variance:VAP",
        "gmap": "shaketable.measure.variance:GMAP",
        "gm_map": "shaketable.measure.variance:GMMap",
        "worst_area": "shaketable.measure.variance:WorstArea",
        "top_change": "shaketable.measure.change:TopChange",
        "kendall": "shaketable.measure.change:Kendall",
        "rbo": "shaketable.measure.change:RBO",
        "overlap": "shaketable.measure.change:Overlap",
        "lsd": "shaketable.measure.change:LSD",
        "rlsd": "shaketable.measure.change:RLSD",
        "lmd": "shaketable.measure.change:LMD",
        "function": "shaketable.measure.function:FunctionMeasure",
    },
    function="function",
)

TASKS = Catalogue(
    "task",
    {
        "effectiveness": "shaketable.task.effectiveness:Effectiveness",
        "first_stage": "shaketable.task.first_stage:FirstStage",
        "variance": "shaketable.task.variance:Variance",
        "risk": "shaketable.task.risk:Risk",
        "agreement": "shaketable.task.agreement:Agreement",
        "query_attack": "shaketable.task.query_attack:QueryAttack",
        "query_variation": "shaketable.task.query_variation:QueryVariation",
        "fusion": "shaketable.task.fusion:Fusion",
        "behaviour": "shaketable.task.behaviour:Behaviour",
        "substitution": "shaketable.task.substitution:Substitution",
        "competition": "shaketable.task.competition:RankCompetition",
        "defence": "shaketable.task.defence:Defence",
        "certificate": "shaketable.task.certificate:Certificate",
        "parity": "shaketable.task.parity:Parity",
        "query_type_shift": "shaketable.task.query_type_shift:QueryTypeShift",
        "corpus_shift": "shaketable.task.corpus_shift:CorpusShift",
        "llm_ranker": "shaketable.task.llm_ranker:LLMRanker",
    },
)

ATTACKS = Catalogue(
    "recipe",
    {
        # by the gradients of a net (paper 003)
        "wsra": "shaketable.attacks.wsra:WSRA",
        "white_wsra": "shaketable.attacks.wsra:WhiteWSRA",
        "hotflip": "shaketable.attacks.triggers:HotFlip",
        # by places alone
        "query_insertion": "shaketable.attacks.insertion:QueryInsertion",
        "query_line": "shaketable.attacks.insertion:QueryLine",
        "keyword_stuffing": "shaketable.attacks.insertion:KeywordStuffing",
        "sentence_insertion": "shaketable.attacks.sentences:SentenceInsertion",
        "instruction": "shaketable.attacks.injection:Instruction",
        "template_tokens": "shaketable.attacks.injection:TemplateTokens",
        "greedy": "shaketable.attacks.substitution:Greedy",
        "characters": "shaketable.attacks.characters:Characters",
        "homoglyphs": "shaketable.attacks.characters:Homoglyphs",
        "invisible": "shaketable.attacks.characters:Invisible",
    },
)

GOALS = Catalogue(
    "goal",
    {
        "promote": "shaketable.attacks.goals:Promote",
        "demote": "shaketable.attacks.goals:Demote",
        "top": "shaketable.attacks.goals:Top",
    },
)

CONSTRAINTS = Catalogue(
    "constraint",
    {
        "most_words": "shaketable.attacks.constraints:MostWords",
        "same_length": "shaketable.attacks.constraints:SameLength",
        "part_of_speech": "shaketable.attacks.constraints:PartOfSpeech",
        "similarity": "shaketable.attacks.constraints:Similarity",
        "fluency": "shaketable.attacks.constraints:Fluency",
        "no_query_terms": "shaketable.attacks.constraints:NoQueryTerms",
    },
)

DETECTORS = Catalogue(
    "detector",
    {
        "spamicity": "shaketable.attacks.detect:Spamicity",
        "surprise": "shaketable.attacks.detect:Surprise",
        "glyphs": "shaketable.attacks.detect:Glyphs",
        "instructions": "shaketable.attacks.detect:Instructions",
    },
)

DEFENCES = Catalogue(
    "defence",
    {
        "typos": "shaketable.defend.typos:Typos",
        "certdr": "shaketable.defend.certdr:CertDR",
        "st": "shaketable.defend.defences:ST",
        "da": "shaketable.defend.defences:DA",
        "at": "shaketable.defend.defences:AT",
        "piat": "shaketable.defend.defences:PIAT",
    },
)

PROBES = Catalogue(
    "probe",
    {
        # measure and match (paper 001, section 4), and axioms
        "matched": "shaketable.probes.matched:Matched",
        "tfc1": "shaketable.probes.axioms:TFC1",
        "tfc2": "shaketable.probes.axioms:TFC2",
        "tfc3": "shaketable.probes.axioms:TFC3",
        "tdc": "shaketable.probes.axioms:TDC",
        "lnc1": "shaketable.probes.axioms:LNC1",
        "tf_lnc": "shaketable.probes.axioms:TFLNC",
        "stmc1": "shaketable.probes.axioms:STMC1",
        "stmc2": "shaketable.probes.axioms:STMC2",
        "prox1": "shaketable.probes.axioms:PROX1",
        "prox2": "shaketable.probes.axioms:PROX2",
        "prox3": "shaketable.probes.axioms:PROX3",
        "prox4": "shaketable.probes.axioms:PROX4",
        "prox5": "shaketable.probes.axioms:PROX5",
        # manipulation (paper 001, then ours)
        "remove_stops_punct": "shaketable.probes.manipulation:RemoveStopsPunct",
        "lemmatize": "shaketable.probes.manipulation:Lemmatize",
        "retokenize": "shaketable.probes.manipulation:Retokenize",
        "fold_case": "shaketable.probes.manipulation:FoldCase",
        "delete_punctuation": "shaketable.probes.manipulation:DeletePunctuation",
        "typos": "shaketable.probes.manipulation:Typos",
        "shuffle_words": "shaketable.probes.manipulation:ShuffleWords",
        "shuffle_sentence_words": "shaketable.probes.manipulation:ShuffleSentenceWords",
        "shuffle_noun_phrases": "shaketable.probes.manipulation:ShuffleNounPhrases",
        "reverse_noun_phrases": "shaketable.probes.manipulation:ReverseNounPhrases",
        "shuffle_some_words": "shaketable.probes.manipulation:ShuffleSomeWords",
        "shuffle_prepositions": "shaketable.probes.manipulation:ShufflePrepositions",
        "shuffle_sentences": "shaketable.probes.manipulation:ShuffleSentences",
        "reverse_sentences": "shaketable.probes.manipulation:ReverseSentences",
        "reverse_words": "shaketable.probes.manipulation:ReverseWords",
        "delete_sentence": "shaketable.probes.manipulation:DeleteSentence",
        "replace_with_query": "shaketable.probes.manipulation:ReplaceWithQuery",
        "prepend_query": "shaketable.probes.manipulation:PrependQuery",
        "add_queries": "shaketable.probes.manipulation:AddQueries",
        "add_nonrelevant_sentence": "shaketable.probes.manipulation:AddNonrelevantSentence",
        "keyword_stuffing": "shaketable.probes.manipulation:KeywordStuffing",
        "duplicate_document": "shaketable.probes.manipulation:DuplicateDocument",
        "bury_answer": "shaketable.probes.manipulation:BuryAnswer",
        "append_boilerplate": "shaketable.probes.manipulation:AppendBoilerplate",
        # data set transfer (paper 001)
        "fluency": "shaketable.probes.transfer:Fluency",
        "formality": "shaketable.probes.transfer:Formality",
        "summaries": "shaketable.probes.transfer:Summaries",
        "simplification": "shaketable.probes.transfer:Simplification",
        "paraphrase": "shaketable.probes.transfer:Paraphrase",
        "bias": "shaketable.probes.transfer:Bias",
        "factuality": "shaketable.probes.transfer:Factuality",
        # minimal pairs
        "negation": "shaketable.probes.minimal:Negation",
        "exclusion": "shaketable.probes.minimal:Exclusion",
        "number": "shaketable.probes.minimal:Number",
        "date": "shaketable.probes.minimal:Date",
        "entity": "shaketable.probes.minimal:Entity",
        "source_bias": "shaketable.probes.minimal:SourceBias",
        "position": "shaketable.probes.minimal:Position",
        "brevity": "shaketable.probes.minimal:Brevity",
        "repetition": "shaketable.probes.minimal:Repetition",
        "literal_match": "shaketable.probes.minimal:LiteralMatch",
        # your own
        "pairs": "shaketable.probes.own:Pairs",
    },
)

SYNONYMS = Catalogue(
    "source of synonyms",
    {
        "thesaurus": "shaketable.text.synonyms:Thesaurus",
        "wordnet": "shaketable.text.synonyms:WordNet",
        "counterfitted": "shaketable.text.synonyms:Counterfitted",
        "listed": "shaketable.text.synonyms:Listed",
    },
)
