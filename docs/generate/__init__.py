"""The pages of the documentation site: those of the repository, a reference from the code, and reports."""
