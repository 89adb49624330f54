"""Fuzzing: damaged files from small grammars; a reader returns, or raises a one-sentence error, within a time limit.

    python -m tests.fuzz --seconds 600 [--target run] [--seed 7]     many new cases
    python -m tests.fuzz.growth                                      long texts: every parser takes linear time
    pytest tests/fuzz                                                the same few thousand cases every time

A new target is one line in `targets.py`: a name, a grammar, and what reads it.
"""
