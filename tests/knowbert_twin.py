"""KnowBert's equations, one sentence, one mention, one candidate at a time; and inputs for them."""

import math

import numpy as np
import torch

from kgkit.heads import LinkerInputs

N = 20


def inputs_of(config, sentences=3, pieces=9, mentions=4, candidates=5, seed=0):
    """Sentences with some of everything: no mention, no candidate, no piece, no vector."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    def below(high, *shape):
        return torch.randint(high, shape, generator=draw)

    starts = below(pieces, sentences, mentions)
    spans = torch.stack([starts, (starts + 1 + below(3, sentences, mentions)).clamp(max=pieces)], dim=-1)
    there = below(10, sentences, mentions) < 7
    real = (below(10, sentences, mentions, candidates) < 7) & there[..., None]
    there[-1] = False  # a sentence without a mention
    there[0, :3] = True
    real[0, 0] = True
    real[0, 1] = False  # a mention without a candidate
    spans[0, 2, 1] = spans[0, 2, 0]  # a mention without a word piece
    vectors = normal(sentences, mentions, candidates, config.stored or config.width)
    vectors[0, 0, 1] = 0  # an entity without a vector
    return LinkerInputs(
        hidden=normal(sentences, pieces, config.hidden),
        spans=spans,
        mentions=there,
        vectors=vectors,
        features=normal(sentences, mentions, candidates, config.features),
        candidates=real & there[..., None],
        null_features=normal(sentences, mentions, config.features) if config.null else None,
    )


def numbers(module):
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def linear(weights, name, x):
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


def layer_norm(weights, name, x):
    if f"{name}.weight" not in weights:
        return x
    centred = x - x.mean()
    return (
        weights[f"{name}.weight"] * centred / math.sqrt((centred**2).mean() + 1e-5) + weights[f"{name}.bias"]
    )


def softmax(values):
    if not len(values):
        return []
    powers = [math.exp(value - max(values)) for value in values]
    return [power / sum(powers) for power in powers]


def slow_pooling(weights, name, words, start, end):
    inside = [words[place] for place in range(start, min(end, len(words)))]
    shares = softmax([float(linear(weights, f"{name}.attend", word)[0]) for word in inside])
    pooled = np.zeros(words.shape[1])
    for share, word in zip(shares, inside, strict=True):
        pooled += share * word
    return pooled


def slow_block(weights, name, state, others, heads):
    """One state, which attends to the others that are there."""
    size = len(state) // heads
    query = linear(weights, f"{name}query", state)
    read = np.zeros(len(state))
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        keys = [linear(weights, f"{name}key", other)[part] for other in others]
        values = [linear(weights, f"{name}value", other)[part] for other in others]
        shares = softmax([float(query[part] @ key) / math.sqrt(size) for key in keys])
        for share, value in zip(shares, values, strict=True):
            read[part] += share * value
    attended = layer_norm(weights, f"{name}out_norm", state + linear(weights, f"{name}out", read))
    inner = [x / 2 * (1 + math.erf(x / math.sqrt(2))) for x in linear(weights, f"{name}up", attended)]
    return layer_norm(weights, f"{name}down_norm", attended + linear(weights, f"{name}down", np.array(inner)))


def slow_linker(linker, inputs):
    """Yield, for each mention that is there: its place, scores by column, ẽ and the span."""
    config, weights = linker.config, numbers(linker)
    given = LinkerInputs(*(None if value is None else value.numpy() for value in inputs))
    for sentence in range(len(given.hidden)):
        words = np.array([linear(weights, "project", state) for state in given.hidden[sentence]])  # (1)
        there = np.flatnonzero(given.mentions[sentence])
        pooled = {}
        for mention in there:
            span = slow_pooling(weights, "pool", words, *given.spans[sentence, mention])
            pooled[mention] = layer_norm(weights, "norm", span)
        for mention in there:
            span = pooled[mention]
            if config.attention:
                span = slow_block(weights, "block.", span, list(pooled.values()), config.heads)  # (2)
            entities, features = {}, {}
            for column in np.flatnonzero(given.candidates[sentence, mention]):
                place = sentence, mention, column
                entity = given.vectors[place]
                if config.stored is not None:
                    entity = linear(weights, "entities.project", entity)
                entities[column] = layer_norm(weights, "entities.norm", entity)
                features[column] = given.features[place]
            if config.null:
                entities[given.vectors.shape[2]] = weights["null"]
                features[given.vectors.shape[2]] = given.null_features[sentence, mention]
            scores = {}
            for column, entity in entities.items():
                fit = float(span @ entity) / math.sqrt(config.width)
                hidden = np.maximum(linear(weights, "score.up", np.array([fit, *features[column]])), 0)
                scores[column] = float(linear(weights, "score.down", hidden)[0])  # (3)
            yield (sentence, mention), scores, slow_weigh(scores, entities, config, weights), span


def slow_weigh(scores, entities, config, weights):
    delta = -math.inf if config.threshold is None else config.threshold
    passing = [column for column, score in scores.items() if score >= delta]
    if scores and not passing:
        return weights["null"]
    weighted = np.zeros(config.width)
    for share, column in zip(softmax([scores[column] for column in passing]), passing, strict=True):
        weighted += share * entities[column]
    return weighted
