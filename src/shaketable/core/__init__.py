"""Core types: documents, collections, protocols, results, registries, seeding, progress and errors."""
