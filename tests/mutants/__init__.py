"""Small faults that are put into copies of the package, to see whether the tests notice them: ``make mutants``."""
