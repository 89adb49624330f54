"""What a user calls, from Python or from the command line: load, audit, evaluate, rank, vary, train."""
