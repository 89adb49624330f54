"""The live page of `view`: lists of rankers, changes of texts, saved pairs, and the server."""
