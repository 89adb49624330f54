"""Postings of a corpus, and the search and scoring over them: what every lexical ranker shares."""
