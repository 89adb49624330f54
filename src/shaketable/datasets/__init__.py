"""Readers and writers for collections (folders, TREC files, ir_datasets, the bundled sample), and their validation."""
