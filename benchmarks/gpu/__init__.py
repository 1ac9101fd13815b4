"""`python -m benchmarks.gpu`: what a GPU is worth, line by line, each beside its control, in one command.

It needs no network and no data beyond the repository. Where a home with knowledge bases (`--home`), the data
folder (`--data`) or the package of MiniLM are there, they are read; else stand-ins are made, and the table
says so. Every line runs in a process of its own with a time limit, so that one which fails becomes a row that
says why; the lines that do not fit into `--budget` are named.

    lines        what a line is, the registry of all, a line's rows as a table
    stand_ins    random knowledge base, texts, encoders
    clocks       seconds and memory of a device; how fast something that reports its progress is
    heads        K-BERT, KnowBert
    vectors      TuckER, text vectors, the nearest rows

A line that comes later is one function with `@line(…)` above it, in a module that `lines.MODULES` names.
"""
