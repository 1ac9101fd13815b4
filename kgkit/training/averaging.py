"""Averages of weights, and when they begin: the averaged SGD that validation triggers (Merity et al. 2018).

Where a validation is worse than the best of those before the last n, the training goes on as it is, and from
that step on the mean of the weights behind each step is kept (Polyak and Juditsky 1992). It is what is
evaluated and saved from then on; the optimizer goes on from its own weights.

Departures:
    AWD-LSTM's code leaves the weights behind the first step out of the mean, as torch.optim.ASGD does.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverages:
    """The means of a model's trained weights.

    Args:
        model: model whose weights they are of.

    Attributes:
        count: number of steps that the means are of.
        means: means by the name of the parameter; the weights as they are, before the first step.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model, self.count = model, 0
        self.means = {name: parameter.detach().clone() for name, parameter in self._trained()}

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights behind a step."""
        self.count += 1
        for name, parameter in self._trained():
            self.means[name].add_(parameter.detach() - self.means[name], alpha=1 / self.count)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the model have the means, and then its own weights again."""
        own = {name: parameter.detach().clone() for name, parameter in self._trained()}
        try:
            self.put(self.means)
            yield
        finally:
            self.put(own)

    @torch.no_grad()
    def put(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights into the model."""
        for name, parameter in self._trained():
            parameter.copy_(weights[name])

    def _trained(self) -> Iterator[tuple[str, nn.Parameter]]:
        return ((name, weight) for name, weight in self.model.named_parameters() if weight.requires_grad)


def is_stalled(values: Sequence[float], last: int) -> bool:
    """Say whether the last of some validations is worse than the best of those before the *last* others.

    Args:
        values: values of all validations, of which higher ones are better.
        last: n, the number of validations before the last one that are not compared with.

    Examples:
        >>> is_stalled([1.0, 3.0, 2.0], 1), is_stalled([1.0, 2.0, 3.0], 1)
        (False, False)
        >>> is_stalled([3.0, 1.0, 2.0], 1)
        True
    """
    before = values[: max(0, len(values) - 1 - last)]
    return bool(before) and values[-1] < max(before)
