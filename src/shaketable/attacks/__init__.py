"""Searches for a harmful edit."""
