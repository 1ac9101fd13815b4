"""Names without a context, such as those of a column of a table, to entities."""
