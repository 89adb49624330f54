"""Documents that are changed to stand elsewhere in a list: recipes, their goals, and the driver of them all."""
