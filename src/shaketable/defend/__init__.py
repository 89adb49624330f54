"""Trainings of rankers that attacks move less, and the adversarial examples that some of them learn from."""
