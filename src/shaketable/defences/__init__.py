"""Defences: training plans against attacks and misspellings, smoothed rankers, and guarded rankers."""
