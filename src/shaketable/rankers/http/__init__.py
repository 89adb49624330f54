"""Rerankers behind an HTTP endpoint: client, dialects, discovery and diagnostics."""
