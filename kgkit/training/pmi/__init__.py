"""PMI tables: counting words and pairs of words in texts, and what follows from the counts."""
