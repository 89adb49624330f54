"""Seeded edits of queries: variations as users make them, attacks, which are valid and of what kind they are."""
