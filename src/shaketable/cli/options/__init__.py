"""The flags of the commands, each described once, and the groups that several commands share."""
