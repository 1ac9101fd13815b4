"""What pipelines of spaCy take of kgkit: the component `kgkit_linker`, and a KB for `entity_linker`."""
