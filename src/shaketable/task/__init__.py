"""Experiments: one file each, named after the question."""
