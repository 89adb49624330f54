"""Diagnosis of a ranker without judgements: questions with known answers, lists that fail open, and drift."""
