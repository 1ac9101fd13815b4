"""Wikipedia, and any other wiki of MediaWiki's, from its dumps: `docs/wikipedia.md` tells what becomes what.

builder           the records of a page, the parts of a source
files             which files a source is
streams           the bytes of a part, through the compression
dump              pages out of XML
wikitext          links, and text without markup
templates         the words of templates
template_tables   which templates have words, as data
lead              first paragraphs, the items of a disambiguation page
clauses           sentences with templates that cannot be read
prose             the text of a page in which surfaces are counted
titles            titles as MediaWiki has them
languages         what differs between the Wikipedias, as data
page_props        Wikidata ids
"""

from kb_builders.wikipedia.builder import WikipediaBuilder

__all__ = ["WikipediaBuilder"]
