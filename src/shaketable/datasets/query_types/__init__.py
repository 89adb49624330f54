"""Query types, such as location or numeric: labels from files, or rules."""
