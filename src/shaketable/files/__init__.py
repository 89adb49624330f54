"""Files: reading, atomic writing, staging folders, checksums and folders of arrays."""
