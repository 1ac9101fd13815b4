"""An optimizer for models that are one large table and a little else.

N  rows of the table    n  rows that a step touches    D  width
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


class RowOptimizer(Optimizer):
    """Adagrad for the rows of a table that a step touches, Adam for everything else.

    A parameter whose gradient is sparse is a table: only the rows in the
    gradient are read and written, so a step costs what the batch is, not what
    the table is. Adagrad (Duchi et al. 2011) moves a row only where its
    gradient is not zero, so this is not an approximation of it: dense Adagrad
    gives the same table. Dense gradients go to Adam (Kingma & Ba 2015).

    Args:
        params: parameters to optimize, one group.
        lr: learning rate of the dense parameters; schedulers change it.
        row_factor: the rows' learning rate is `lr * row_factor`.
        betas: decay rates of Adam.
        eps: epsilon of Adam.
        row_eps: epsilon of Adagrad.
        row_decay: each step takes this share of `lr * row_factor` off the rows that it touches, 1 at most.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        row_factor: float = 100.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        row_eps: float = 1e-10,
        row_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "row_factor": row_factor,
                "betas": tuple(betas),
                "eps": eps,
                "row_eps": row_eps,
                "row_decay": row_decay,
            },
        )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the parameters along their gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                update = _adagrad_rows if parameter.grad.is_sparse else _adam
                update(parameter, parameter.grad, self.state[parameter], group)
        return loss


def _adagrad_rows(table: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    if not state:
        state["sum"] = torch.zeros_like(table)  # (N, D)
    gradient = gradient.coalesce()
    rows, slopes = gradient.indices()[0], gradient.values()  # (n,), (n, D)
    total = state["sum"].index_select(0, rows).addcmul_(slopes, slopes)
    state["sum"].index_copy_(0, rows, total)
    rate = group["lr"] * group["row_factor"]
    moved = table.index_select(0, rows)
    if group["row_decay"]:
        moved.mul_(max(0.0, 1 - rate * group["row_decay"]))
    moved.addcdiv_(slopes, total.sqrt_().add_(group["row_eps"]), value=-rate)
    table.index_copy_(0, rows, moved)


def _adam(parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    if not state:
        state["step"] = 0
        state["mean"], state["square"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
    state["step"] += 1
    first, second = group["betas"]
    mean = state["mean"].lerp_(gradient, 1 - first)
    square = state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
    scale: float = (1 - second ** state["step"]) ** 0.5
    rate = group["lr"] / (1 - first ** state["step"])
    parameter.addcdiv_(mean, square.sqrt().div_(scale).add_(group["eps"]), value=-rate)
