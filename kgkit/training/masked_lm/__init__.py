"""Training masked language models: what a KAM-BERT adds to one, and an encoder from nothing."""
