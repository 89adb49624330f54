"""The tasks of an audit: one module for each task, and private helper modules."""
