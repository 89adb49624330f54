"""Rerank servers with planted faults, and how often `shaketable doctor` and `shaketable watch` find them."""
