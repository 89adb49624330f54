"""Detection rates of `shaketable doctor` and `shaketable watch` for rerank servers with planted faults."""
