"""Records as HTML: pages of links, and what a notebook shows of links, entities and knowledge bases.

The records themselves are a room above, and are imported for type checkers alone.
"""
