"""Texts of half a megabyte, and a query of 40,000 words: no task stalls, and the report stays small."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

LONG_CHARS = 500_000
LONG_QUERY_WORDS = 40_000
TIMEOUT_S = 150
"""On an idle machine the audit takes about 10 seconds; a quadratic step in one of the tasks takes many minutes."""
MAX_REPORT_BYTES = 10_000_000
TASKS = ("effectiveness", "consistency", "query_typos", "query_variation", "document_form", "probes", "document_attack")

AUDIT = """
import sys
import shaketable as st

def count_characters(query, texts):
    return [-len(text) for text in texts]

count_characters.pointwise = True
done = st.audit("texts", {"bm25": "bm25", "mine": count_characters}, sys.argv[1:], max_queries=4)
done.save("out")
print(*(note for result in done.results for note in result.notes))
"""


def make_words(count: int, rng: random.Random) -> list[str]:
    syllables = [a + b for a in "bcdfglmnprst" for b in "aeiou"]
    vocabulary = ["".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(3000)]
    return rng.choices(vocabulary, k=count)


@pytest.fixture(scope="module")
def long_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of 40 short documents and three long ones: words, one word, and one endless sentence."""
    folder = tmp_path_factory.mktemp("long")
    rng = random.Random(3)
    words = make_words(LONG_CHARS // 5, rng)
    docs = {f"d{i}": " ".join(" ".join(make_words(9, rng)).capitalize() + "." for _ in range(6)) for i in range(40)}
    clauses = (" ".join(words[i : i + 9]) for i in range(0, len(words), 9))
    docs |= {"words": " ".join(words), "one word": "".join(words), "one sentence": ", and ".join(clauses)}
    docs = {docno.replace(" ", "-"): text[:LONG_CHARS] for docno, text in docs.items()}
    queries = {f"q{i}": " ".join(rng.sample(docs[f"d{i}"].lower().replace(".", "").split(), 4)) for i in range(4)}
    queries["q1"] = " ".join(rng.choices(words, k=LONG_QUERY_WORDS))
    judged = [(qid, docno, int(docno == f"d{qid[1:]}")) for qid in queries for docno in [*[*docs][-8:], f"d{qid[1:]}"]]
    (folder / "texts" / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", docs), ("queries", queries)):
        lines = (json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items())
        (folder / "texts" / f"{name}.jsonl").write_text("".join(lines))
    rows = "".join(f"{qid}\t{docno}\t{grade}\n" for qid, docno, grade in judged)
    (folder / "texts" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return folder


def test_an_audit_of_long_texts(long_texts):
    done = subprocess.run(
        [sys.executable, "-c", AUDIT, *TASKS], cwd=long_texts, timeout=TIMEOUT_S, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("more than 200,000 characters") == 2
    written = {file.name: file.stat().st_size for file in (long_texts / "out").iterdir() if file.is_file()}
    assert written["report.html"] < 1_000_000
    assert sum(written.values()) < MAX_REPORT_BYTES, written
