"""Language models as rankers: prompt schedules (`orders`), prompts and parsers (`prompts`), and the client."""
