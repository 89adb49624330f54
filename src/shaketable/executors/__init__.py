"""Executors run jobs: in this process, in threads, in worker processes, or on a Ray cluster."""
