"""A benchmark of the verdict: rankers with a flaw that is planted by construction, and sound rankers.

    python -m benchmarks.planted [--quick] [--share 0.5] [--part audits sound gate coverage power]

A planted ranker scores by the judgements plus seeded noise, so its quality is known, and recognises a document or query
after every transform of Shaketable, so it has no flaw but the planted one. The benchmark audits each ranker and reports
whether the verdict names the flaw, misnames it or is silent, and how often it raises a false alarm on a sound ranker.
"""
