"""Rankers: lexical, learned, neural, remote, and runs that were made elsewhere."""
