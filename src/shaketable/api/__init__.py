"""The public API: the functions behind `import shaketable as st` and the command line."""
