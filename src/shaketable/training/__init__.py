"""Learners, training plans, objectives and the training loop."""
