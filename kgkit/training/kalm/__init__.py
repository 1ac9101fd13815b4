"""Training KALMs: from plain text and a knowledge base of types to language models of words."""
