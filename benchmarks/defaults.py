"""Mean average precision of lexical rankers on judged collections, against other parameters than their defaults.

    python benchmarks/defaults.py [--quick] [FOLDER...]

Each folder is a collection in BEIR form; the default is the bundled sample. AP is that of trec_eval for the top 1000
documents, averaged over all judged queries.
"""

from __future__ import annotations

import pytrec_eval
from quick import make_parser

from shaketable.core.documents import Collection
from shaketable.core.registries import RANKERS
from shaketable.datasets.load import load
from shaketable.nlp.wordnet import find_wordnet_path

SPECS = """
bm25
bm25(k1=0.9, b=0.4)
bm25(idf='robertson')
bm25(stemmer='snowball')
bm25(stemmer='none')
bm25(stopwords='none')
ql
ql(mu=300)
ql(mu=2500)
ql_jm
ql_jm(lambda_=0.5)
rm3
rm3(docs=3, original=0.4)
rm3(base=ql)
""".strip().splitlines()
WORDNET_SPECS = ["bm25(stemmer='krovetz')", "bm25(stemmer='krovetz', split='space')", "bm25(split='space')"]
"""The analyzers of paper 000, which need WordNet (NLTK_DATA)."""


def measure_map(model: str, collection: Collection) -> float:
    """Return the mean average precision of a ranker on a collection."""
    queries = {qid: collection.queries[qid].text for qid in collection.qrels}
    answers = RANKERS.build(model).open(collection).search(list(queries.values()), 1000)
    judged = {qid: dict(grades) for qid, grades in collection.qrels.items()}
    measured = pytrec_eval.RelevanceEvaluator(judged, {"map"}).evaluate(dict(zip(queries, answers, strict=True)))
    return sum(row["map"] for row in measured.values()) / len(queries)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("folders", nargs="*", default=["sample"])
    given = parser.parse_args()
    collections = [load(folder) for folder in given.folders]
    print(f"{'MAP':40}" + "".join(f"{c.name[:10]:>11}" for c in collections))
    specs = [*SPECS, *(WORDNET_SPECS if find_wordnet_path() else [])]
    for model in specs[:: 5 if given.quick else 1]:
        print(f"{model:40}" + "".join(f"{measure_map(model, c):11.3f}" for c in collections), flush=True)


if __name__ == "__main__":
    main()
