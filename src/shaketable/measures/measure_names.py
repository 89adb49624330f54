"""Parsing and formatting of measure names, as ir_measures, trec_eval and papers write them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.import_object import OBJECT_PATTERN
from shaketable.core.registries import MEASURES
from shaketable.measures.user_function import FunctionMeasure, InstalledMeasure

if TYPE_CHECKING:
    from ir_measures import Measure

MEASURE_ALIASES = {
    "map_cut": "AP",
    "recip_rank": "RR",
    "ndcg_cut": "nDCG",
    "prec": "P",
    "r_precision": "Rprec",
    "hit": "Success",
    "hits": "Success",
    "hit_rate": "Success",
    "iprec_at_recall": "IPrec",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    "set_p": "SetP",
    "set_relative_p": "SetRelP",
    "set_recall": "SetR",
    "set_f": "SetF",
    "set_map": "SetAP",
}
"""The name in trec_eval or a paper -> the name in ir_measures, beyond its own aliases (MAP, MRR, Recall)."""
RANKER_LEVEL_MEASURES = {
    "gm_map": "the task variance reports it as gMAP floor; its value for one query is AP",
    "gmap": "the task variance reports it as gMAP; its value for one query is AP",
    "vnap": "the task variance reports it; its value for one query is AP",
    "vap": "the task variance reports it; its value for one query is AP",
}
"""Measures without values per query, and their alternatives."""
AMBIGUOUS_MEASURES = {
    "NDCG": "papers on learning to rank mean a gain of 2^grade - 1, ir_measures a linear gain; write nDCG@10 for the "
    "linear gain (as trec_eval) or nDCG(dcg='exp-log2')@10 for the exponential gain"
}
"""Spellings, in this case only, that mean different measures in different places, and what to write."""
EXAMPLE_MEASURES = {
    "nDCG@10": "gain of the first 10, discounted by rank; linear in the grade, nDCG(dcg='exp-log2')@10 for 2^g - 1",
    "AP": "mean precision at the relevant documents, retrieved or not (MAP is its mean); AP@100 uses the first 100",
    "RR@10": "1 / rank of the first relevant document, 0 beyond rank 10; RR(rel=2)@10 counts grades from 2 up",
    "P@20": "share of the first 20 that is relevant",
    "R@100": "share of the relevant documents that is among the first 100",
    "Success@5": "1 if a relevant document is among the first 5, else 0",
    "Rprec": "precision at the number of relevant documents",
    "Bpref": "preference for relevant documents over those judged not relevant; ignores unjudged documents",
    "ERR@20": "expected reciprocal rank at which a reader is satisfied; grades 0 to 4, as TREC's gdeval",
    "RBP": "the gain of a reader who continues to the next rank with probability 0.8; RBP(p=0.5), RBP(rel=2)@100",
    "SetF": "F1 of the retrieved set",
    "Judged@10": "share of the first 10 that has a judgement",
    "Unjudged@10": "share of the first 10 that has no judgement",
}
"""The most common measures; `parse_measure` reads all of ir_measures."""
_MEASURE_PATTERN = re.compile(
    r"([^\W\d][\w-]*?)\s*+(?:\(\s*+(.*)\)\s*+)?(?:(?:@\s*+|[_.])([0-9]{1,9}(?:\.[0-9]{1,9})?))?", re.DOTALL
)


def parse_measure(text: str) -> Measure:
    """Parse the name of a measure as ir_measures, trec_eval or a paper writes it; case does not matter.

    Only NDCG, all in capitals, is an error, because it names two measures (`AMBIGUOUS_MEASURES`). Other names are those
    of measures of installed packages (the entry points of `MEASURES`).

    >>> parse_measure("ndcg_cut_10"), parse_measure("mrr@10")
    (nDCG@10, RR@10)
    >>> parse_measure("RR(rel=2)@10"), parse_measure("nDCG(dcg='exp-log2')@10")
    (RR(rel=2)@10, nDCG(dcg='exp-log2')@10)
    """
    if re.fullmatch(OBJECT_PATTERN, text.strip()):
        return cast("Measure", FunctionMeasure(text.strip()))  # only its name is used
    form = _MEASURE_PATTERN.fullmatch(text.strip())
    if form is None:
        raise BadInput(f"cannot read the measure {text!r}: write NAME, NAME@K or NAME(parameter=value)@K")
    if _is_installed(form[1]):
        return cast("Measure", _build_installed(text.strip()))
    base = _find_measure(form[1])
    given = _parse_parameters(form[2] or "", text)
    if form[3] is not None:
        given[base.AT_PARAM] = float(form[3]) if "." in form[3] else int(form[3])
    return _build_measure(base, given, text)


def format_measure(measure: Measure) -> str:
    """Format a measure; `parse_measure` reads the text back.

    >>> format_measure(parse_measure("map")), format_measure(parse_measure("recall_20"))
    ('AP', 'R@20')
    """
    return str(measure)


def name_measures(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names of measures as ir_measures writes them, each once.

    >>> name_measures(["ndcg_cut_10", "map", "nDCG@10"])
    ('nDCG@10', 'AP')
    """
    return tuple(dict.fromkeys(format_measure(parse_measure(text)) for text in texts))


@cache
def _load_known_measures() -> dict[str, Measure]:
    from ir_measures.measures import registry

    own = {key.lower(): measure for key, measure in registry.items() if key.isascii()}
    kind = type(registry["Judged"])
    unjudged = type("Unjudged", (kind,), {"__name__": "Unjudged", "NAME": "Unjudged"})()
    return own | {nickname: registry[key] for nickname, key in MEASURE_ALIASES.items()} | {"unjudged": unjudged}


def _is_installed(name: str) -> bool:
    """Return True if only an installed package has a measure of this name."""
    if name.lower().replace("-", "_") in {*_load_known_measures(), *RANKER_LEVEL_MEASURES, *MEASURES.builtin_rows}:
        return False
    return name.replace("-", "_") in MEASURES.rows


def _build_installed(text: str) -> InstalledMeasure:
    measure = MEASURES.build(text)
    spec = MEASURES.spec(measure)
    if not callable(getattr(measure, "value", None)):
        raise BadInput(f"the measure {spec} has no method value(grades, docnos), so it does not measure one list")
    return InstalledMeasure(spec, measure)


def _find_measure(text: str) -> Measure:
    if text in AMBIGUOUS_MEASURES:
        raise BadInput(f"{text} is ambiguous: {AMBIGUOUS_MEASURES[text]}")
    key = text.lower().replace("-", "_")
    if key in RANKER_LEVEL_MEASURES:
        raise BadInput(f"{text} is one number per ranker, not per query; {RANKER_LEVEL_MEASURES[key]}")
    if key not in _load_known_measures():
        installed = MEASURES.rows.keys() - MEASURES.builtin_rows.keys()
        raise UnknownName("measure", text.lower(), [*_load_known_measures(), *installed])
    return _load_known_measures()[key]


def _parse_parameters(text: str, whole: str) -> dict[str, Any]:
    # ir_measures parses these with node classes that Python 3.14 removed
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if isinstance(call, ast.Call) and not call.args and all(k.arg for k in call.keywords):
            return {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    raise BadInput(f"cannot read the parameters of measure {whole!r}: write them as name=value, for example rel=2")


def _build_measure(base: Measure, given: dict[str, Any], text: str) -> Measure:
    known: dict[str, Any] = base.SUPPORTED_PARAMS
    if strange := given.keys() - known.keys():
        takes = ", ".join(known) or "nothing"
        raise BadInput(f"measure {text!r}: {base.NAME} has no parameter {min(strange)}; its parameters are: {takes}")
    as_floats = {key: float(v) for key, v in given.items() if known[key].dtype is float and isinstance(v, int)}
    measure: Measure = base(**dict(sorted((given | as_floats).items())))
    for key, info in known.items():
        value = measure.params.get(key, info.default)
        if not info.validate(value) or (key in measure.params and key == "cutoff" and value < 1):
            wrong = f"{key}={value!r} is not a valid value" if key in measure.params else f"it needs a {key}"
            example = f"{base.NAME}@10" if key == "cutoff" else f"{base.NAME}({key}=...)"
            raise BadInput(f"measure {text!r}: {wrong}; write for example {example}")
    return measure
