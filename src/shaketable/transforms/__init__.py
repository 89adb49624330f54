"""Seeded changes of texts, for queries, probes, attacks and training: each change exists once, here."""
