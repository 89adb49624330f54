"""Budgets of audits: how much to ask of slow rankers, and when to stop."""
