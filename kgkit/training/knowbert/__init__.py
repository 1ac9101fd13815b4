"""Training a KnowBert: Algorithm 1 of Peters et al. (2019), a stage at a time, and tasks behind it."""
