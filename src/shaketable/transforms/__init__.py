"""Seeded text transforms shared by queries, probes, attacks and training."""
