"""The road to a ranker: the only way scores are asked for."""
