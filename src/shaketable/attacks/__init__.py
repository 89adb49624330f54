"""Attacks that change a document to change its rank: recipes, goals, constraints, detectors and the runner."""
