"""The flags of the commands, and groups of flags that several commands share."""
