"""All readers of untrusted input, one line each: a name, a grammar, the reader, the name of the file."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from shaketable.api.settings import FlagType, read_settings
from shaketable.datasets.adversarial_documents import read_adversarial_documents, write_adversarial_documents
from shaketable.datasets.beir import read_beir, read_queries, read_variants
from shaketable.datasets.competition import read_competition
from shaketable.datasets.corpus import JsonlCorpus
from shaketable.datasets.letor import read_letor, write_letor
from shaketable.datasets.limits import describe_id_problem
from shaketable.datasets.pairs import read_crossed_pairs, read_pairs
from shaketable.datasets.published_pairs import read_jfleg
from shaketable.datasets.query_types.labels import read_query_type_rows
from shaketable.datasets.scores import read_scores
from shaketable.datasets.trec import read_qrels, read_run_and_tag, read_topics, write_qrels, write_run
from shaketable.files.reading import parse_json
from shaketable.measures.effectiveness import Evaluator
from shaketable.measures.measure_names import parse_measure
from shaketable.nlp.embedding_neighbours import _read_lists, _read_vectors
from shaketable.nlp.misspellings import read_misspellings
from shaketable.nlp.synonyms import ListedSynonyms
from shaketable.nlp.thesaurus import read_thesaurus
from shaketable.nlp.word_vectors import read_vectors
from shaketable.nlp.wordnet import read_wordnet
from shaketable.probes.user_pairs import read_expectations
from shaketable.report.rules import read_rules
from tests.fuzz import grammars
from tests.fuzz.cases import Target, of_text

HALF = re.compile(r"(?<!\\)(?:\\\\)*\\ud[89a-f]")  # as `repr` writes it
MEASURES = tuple(map(parse_measure, ("AP", "nDCG@10", "RR@10", "P@5", "Bpref", "SetF", "Judged@10")))


def _names_are_ids(*names: str) -> None:
    for each in names:
        assert not describe_id_problem(each), each


def _texts(value: object) -> object:
    """Return a value after checking that all its texts can be encoded."""
    assert not HALF.search(repr(value))
    return value


def _qrels(path: Path) -> object:
    qrels = read_qrels(path)
    if not any(qid.startswith("#") for qid in qrels):  # in a table with tabs it may, in TREC's it would be a comment
        with tempfile.TemporaryDirectory() as folder:
            write_qrels(qrels, Path(folder) / "again")
            assert read_qrels(Path(folder) / "again") == qrels
    return qrels


def _run(path: Path) -> object:
    run, tag = read_run_and_tag(path)
    assert tag.split() == [tag]
    with tempfile.TemporaryDirectory() as folder:
        write_run(run, Path(folder) / "again")
        assert read_run_and_tag(Path(folder) / "again")[0] == run
    return run


def _corpus(path: Path) -> object:
    corpus = JsonlCorpus.read(path)
    docs = dict(corpus.items())
    _names_are_ids(*docs)
    assert len(docs) == len(corpus)
    assert all(corpus[docno] == doc for docno, doc in docs.items())
    return _texts(docs)


def _with_ids(value: Mapping[str, object]) -> object:
    _names_are_ids(*value)
    return _texts(dict(value))


def _scores(path: Path) -> object:
    table = read_scores(path)
    _names_are_ids(*table.topics)
    assert table.values.shape == (len(table.systems), len(table.topics))
    assert np.isfinite(table.values).all()
    return table.systems, table.topics, table.values.tolist()


def _letor(path: Path) -> object:
    data = read_letor(path)
    _names_are_ids(*data.qids, *data.docnos)
    assert np.isfinite(data.features).all()
    if not any("#" in qid for qid in data.qids):
        with tempfile.TemporaryDirectory() as folder:
            write_letor(data, Path(folder) / "again")
            again = read_letor(Path(folder) / "again")
        assert (again.qids, again.docnos, again.labels.tolist()) == (data.qids, data.docnos, data.labels.tolist())
        assert (again.features == data.features).all()
    return data.qids, data.docnos, data.names, data.labels.tolist(), data.features.tolist()


def _vectors(path: Path) -> object:
    words, rows = read_vectors(path)
    assert np.isfinite(rows).all()
    return words, rows.tolist()


def _near(path: Path) -> object:
    vectors = _read_vectors(path)
    lengths = np.linalg.norm(vectors.rows, axis=1)
    assert (np.isclose(lengths, 1, atol=1e-3) | (lengths == 0)).all()
    return [vectors.find_nearest(word, 3, 0.5) for word in vectors.words]


def _lists(path: Path) -> object:
    lists = _read_lists(path)
    return _texts({word: list(lists.find_nearest(word, 3, 0.5)) for word in lists.words})


def _read_adversarial_documents(path: Path) -> object:
    documents = read_adversarial_documents(path)
    for one in documents:
        _names_are_ids(*one.queries, *([one.docno] if one.docno else []))
        assert {len(one.ranks_before), len(one.ranks_after)} <= {0, len(one.queries)}
    with tempfile.TemporaryDirectory() as folder:
        write_adversarial_documents(documents, Path(folder) / "again")
        assert read_adversarial_documents(Path(folder) / "again") == documents
    return _texts(documents)


def _synonyms(path: Path) -> object:
    source = ListedSynonyms(str(path))
    found = {word: source.lookup(word) for word in ("boat", "one", "ones", "Boat")}
    assert all(word.lower() not in others for word, others in found.items())
    return _texts(found)


def _wordnet(folder: Path) -> object:
    words = read_wordnet.__wrapped__(folder)
    return {
        (pos, key): words.find_synonyms(key.decode("utf-8", "replace"), pos)
        for pos in words.index
        for key in words.index[pos]
    }


def _folder(folder: Path) -> object:
    collection = read_beir(folder)
    _names_are_ids(*collection.queries, *collection.qrels, *collection.candidates, *collection.variants)
    docs = dict(collection.docs.items())
    return _texts((docs, collection.queries, collection.qrels, collection.candidates, collection.variants))


def _competition(folder: Path) -> object:
    race = read_competition(folder)
    _names_are_ids(
        *race.queries, *(author for matches in race.rounds.values() for docs in matches.values() for author in docs)
    )
    assert any(len(race.get_contested_rounds(qid)) > 1 for qid in race.queries)
    return _texts((race.queries, race.rounds, race.grades))


def _evaluate_files(folder: Path) -> object:
    """Evaluate the data that were read; the evaluation library itself checks nothing."""
    qrels, (run, _) = read_qrels(_there(folder / "qrels")), read_run_and_tag(_there(folder / "run"))
    values = Evaluator(MEASURES, qrels).evaluate(run)
    assert all(math.isfinite(value) and 0 <= value <= 1 for row in values.values() for value in row.values())
    return values


def _there(path: Path) -> Path:
    return path if path.exists() else path.with_name(f"{path.name}.gz")


FLAGS = {
    "data": FlagType("a text"),
    "ranker": FlagType("a text", repeatable=True),
    "depth": FlagType("a whole number"),
    "seed": FlagType("a whole number"),
    "keep-going": FlagType("true or false"),
}

TARGETS = {
    target.name: target
    for target in (
        Target("qrels", grammars.qrels, _qrels, "test.tsv"),
        Target("run", grammars.run, _run, "first.run"),
        Target("corpus", grammars.corpus, _corpus, "corpus.jsonl"),
        Target("queries", grammars.queries, lambda path: _with_ids(read_queries(path)), "queries.jsonl"),
        Target("variants", grammars.variants, lambda path: _with_ids(read_variants(path)), "variants.jsonl"),
        Target(
            "crossed pairs", grammars.crossed_pairs, lambda path: _texts(list(read_crossed_pairs(path))), "pairs.jsonl"
        ),
        Target("pairs", grammars.own_pairs, lambda path: _texts(list(read_pairs(path))), "pairs.jsonl"),
        Target("own pairs", grammars.own_pairs, lambda path: _texts(list(read_expectations(path))), "pairs.jsonl"),
        Target(
            "attacked documents", grammars.write_adversarial_documents, _read_adversarial_documents, "attacked.jsonl"
        ),
        Target("rewrites", grammars.rewrites, lambda path: _texts(list(read_jfleg(str(path)))), text=False),
        Target("topics in a table", grammars.topics_table, lambda path: _with_ids(read_topics(path)), "topics.tsv"),
        Target("topics in SGML", grammars.topics_sgml, lambda path: _with_ids(read_topics(path)), "topics.txt"),
        Target("topics in XML", grammars.topics_xml, lambda path: _with_ids(read_topics(path)), "topics.xml"),
        Target("scores", grammars.scores, _scores, "scores.csv"),
        Target("kinds of queries", grammars.kinds, lambda path: _texts(read_query_type_rows(path)), "kinds.tsv"),
        Target("letor", grammars.letor, _letor, "train.txt"),
        Target("vectors", grammars.vectors, _vectors, "vectors.txt"),
        Target("vectors of neighbours", grammars.vectors, _near, "vectors.txt"),
        Target("lists of neighbours", grammars.neighbour_lists, _lists, "neighbours.json"),
        Target("thesaurus", grammars.thesaurus, lambda path: _texts(read_thesaurus(path)), "thesaurus.txt"),
        Target("own synonyms", grammars.own_synonyms, _synonyms, "synonyms.tsv"),
        Target("misspellings", grammars.misspellings, lambda path: _texts(read_misspellings(path)), "misspellings.txt"),
        Target("wordnet", grammars.wordnet, _wordnet, text=False),
        Target("folder", grammars.folder, _folder),
        Target("competition", grammars.competition, _competition),
        Target("judged run", grammars.judged_run, _evaluate_files),
        Target("rules", grammars.rules, read_rules, "rules.toml", text=False),
        Target("settings", grammars.settings, lambda path: read_settings(path, FLAGS), "shaketable.toml", text=False),
        Target(
            "JSON", grammars.neighbour_lists, of_text(lambda text: parse_json(text, Path("x"))), "x.json", text=False
        ),
    )
}
