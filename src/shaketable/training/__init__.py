"""Fitting: learners turn feature rows with labels into models."""
