"""Parts of pipelines of spaCy: the component `kgkit_linker`, and a KB for `entity_linker`."""
