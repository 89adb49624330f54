"""Rankers: lexical, learned, neural, remote, and recorded runs."""
