"""Tokens, stems, sentences, synonyms, keyboards: what is known of words without looking at a collection."""
