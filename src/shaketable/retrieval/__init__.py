"""The inverted index of a corpus, and the search and scoring shared by all lexical rankers."""
