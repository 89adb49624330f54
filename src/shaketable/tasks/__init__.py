"""The tasks of an audit: one module for each, and helper modules that start with an underscore."""
