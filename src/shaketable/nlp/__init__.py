"""Text processing that needs no collection: tokens, stems, sentences, synonyms, keyboards."""
