"""Language models as rankers: what is asked (`orders`), in which words (`prompts`), of whom (`client`)."""
