"""Collections in and out: folders, TREC files, ir_datasets, the bundled sample; and the doctor who examines them."""
