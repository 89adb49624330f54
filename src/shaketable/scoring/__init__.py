"""The scoring engine, which calls rankers and caches their scores."""
