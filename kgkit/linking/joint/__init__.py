"""The joint linker: links to any knowledge base of names, without training.

scorer                scores: whether a string is a name, of which entity, or of none
text                  words of a text, and where its capitals tell nothing
mention_features      spelling, position, words beside a mention
unspaced              the same in scripts without spaces
candidate_features    names, texts and facts of an entity beside the text
types                 sorts of entities by the KB's words for their kinds
words                 classes of words, counts of words in general English
network               networks over these features
"""
