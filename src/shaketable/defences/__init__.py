"""Rankers that hold out: plans of training against attacks and slips, and rankers with a guard before them."""
