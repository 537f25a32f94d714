"""What a judge's verdicts teach the gate about one person: how much likelier, or less, its maybes are to help here."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kite_memory.recall.gate import FEATURES, Gate, logit
from kite_memory.recall.session_memory import Ruling

LEAST = 50
"""With fewer verdicts than this the shipped gate stands."""
_PRIOR = 25.0
"""How many verdicts' worth of belief the shipped bias has, in the curvature of their loss."""
_FURTHEST = 1.5
_STEPS = 20


def personal(gate: Gate, rulings: Sequence[Ruling]) -> Gate:
    """The gate with its bias moved, by at most 1.5 in the logit, to where the verdicts on its first candidates lie.

    The weights stay: a person's verdicts are too few, and all of them from the gate's own doubts, to fit more than one number.
    """
    seen = [each for each in rulings if len(each.features) == len(FEATURES) and each.notes]
    if len(seen) < LEAST:
        return gate
    rows = np.array([each.features for each in seen])
    logits = np.array([logit(float(likely)) for likely in gate.probabilities(rows)])
    first = [max(each.notes, key=lambda ruled: ruled.score) for each in seen]
    helped = np.array([min(each.anything, best.probability) for each, best in zip(seen, first, strict=True)])
    shift = 0.0
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-(logits + shift)))
        slope = float((likely - helped).sum()) + _PRIOR * shift
        step = slope / (float((likely * (1 - likely)).sum()) + _PRIOR)
        shift -= math.copysign(min(abs(step), 1.0), step)  # a full step from far away would leap over the end
        if abs(step) < 1e-6:
            break
    return replace(gate, bias=gate.bias + math.copysign(min(abs(shift), _FURTHEST), shift))
