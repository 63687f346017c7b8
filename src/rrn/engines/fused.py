"""The functions of `rrn.engines.passes` in compiled code: each is one pass over edges in the cache."""

import numpy as np

from rrn._compat import compiled


@compiled
def first_layer(
    source: np.ndarray,
    target: np.ndarray,
    terms: np.ndarray,
    senders: np.ndarray,
    receivers: np.ndarray,
    out: np.ndarray,
) -> None:
    zero = out.dtype.type(0)
    for e in range(len(out)):
        i, j = senders[e], receivers[e]
        if len(terms):
            for k in range(out.shape[1]):
                z = source[i, k] + target[j, k] + terms[e, k]
                out[e, k] = zero if z < zero else z
        else:
            for k in range(out.shape[1]):
                z = source[i, k] + target[j, k]
                out[e, k] = zero if z < zero else z


@compiled
def add_relu(z: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
    zero = z.dtype.type(0)
    for e in range(len(z)):
        for k in range(z.shape[1]):
            value = z[e, k] + bias[k]
            out[e, k] = zero if value < zero else value


@compiled
def collect(z: np.ndarray, bias: np.ndarray, receivers: np.ndarray, total: np.ndarray, positive: np.ndarray) -> None:
    zero = z.dtype.type(0)
    for e in range(len(z)):
        j = receivers[e]
        for k in range(z.shape[1]):
            value = z[e, k] + bias[k]
            total[j, k] += zero if value < zero else value
        if len(positive):
            for k in range(z.shape[1]):
                positive[e, k] = z[e, k] + bias[k] > zero


@compiled
def spread(
    gradient: np.ndarray, receivers: np.ndarray, positive: np.ndarray, flow: np.ndarray, to_bias: np.ndarray
) -> None:
    zero = flow.dtype.type(0)
    for e in range(len(flow)):
        j = receivers[e]
        for k in range(flow.shape[1]):
            flow[e, k] = gradient[j, k] if positive[e, k] > 0 else zero
            to_bias[k] += flow[e, k]


@compiled
def through_relu(flow: np.ndarray, z: np.ndarray, to_bias: np.ndarray) -> None:
    zero = flow.dtype.type(0)
    for e in range(len(flow)):
        for k in range(flow.shape[1]):
            flow[e, k] = flow[e, k] if z[e, k] > zero else zero
            to_bias[k] += flow[e, k]


@compiled
def to_ends(
    flow: np.ndarray,
    z: np.ndarray,
    senders: np.ndarray,
    receivers: np.ndarray,
    to_source: np.ndarray,
    to_target: np.ndarray,
    to_terms: np.ndarray,
) -> None:
    zero = flow.dtype.type(0)
    for e in range(len(flow)):
        i, j = senders[e], receivers[e]
        for k in range(flow.shape[1]):
            through = flow[e, k] if z[e, k] > zero else zero
            to_source[i, k] += through
            to_target[j, k] += through
        if len(to_terms):
            for k in range(flow.shape[1]):
                to_terms[e, k] = flow[e, k] if z[e, k] > zero else zero
