"""The documentation: Markdown pages, and the programs that write parts of them."""
