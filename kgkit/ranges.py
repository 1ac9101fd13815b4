"""Ranges of the numbers in settings: one check, and one way to say what is out of range."""

import math

from kgkit.errors import UsageError


def check_range(
    settings: object,
    *names: str,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> None:
    """Make sure that numbers of settings are finite and in range; a number that is None is not looked at.

    Args:
        settings: object with the numbers as attributes.
        names: names of the numbers.
        least, most: bounds that belong to the range; None: there is no such bound.
        above, below: bounds that do not.

    Raises:
        UsageError: if one is out of range, or no number.

    Examples:
        >>> check_range(config, "dropout", least=0, below=1)
        UsageError: dropout is 1.5; it is from 0 to below 1
    """
    for name in names:
        value = getattr(settings, name)
        if value is None:
            continue
        fits = isinstance(value, int | float) and (
            (least is None or value >= least)
            and (above is None or value > above)
            and (most is None or value <= most)
            and (below is None or value < below)
        )
        described = _described(least, above, most, below)
        if fits and isinstance(value, float) and math.isinf(value):
            raise UsageError(f"{name} is {value}; expected a finite number, {described}")
        if not fits:
            raise UsageError(f"{name} is {value}; it is {described}")


def _described(least: float | None, above: float | None, most: float | None, below: float | None) -> str:
    upper = f"{most:g}" if most is not None else f"below {below:g}" if below is not None else ""
    if least is not None:
        return f"from {least:g} to {upper}" if upper else f"{least:g} or more"
    if above is not None:
        return f"above {above:g}{f', up to {upper}' if upper else ''}"
    return f"up to {upper}" if upper else "a number"
