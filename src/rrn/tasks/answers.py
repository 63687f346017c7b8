"""Answers of a network: the logits of a batch, and the `Result` of one question with its explanation."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from rrn.inference.result import Result, Status
from rrn.nn.readouts import answer_of
from rrn.training.experiment import Batch

LEAST_IMPORTANCE = 0.01


@torch.no_grad()
def answer_logits(network: nn.Module, batch: Batch, steps: int) -> Tensor:
    """Logits of the answers after each step, (steps, n, choices), computed on the network's device, on the CPU."""
    device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    outputs, _ = network({name: tensor.to(device) for name, tensor in batch.items()}, steps=steps)
    return answer_of(outputs).to("cpu", torch.float32)


def answer_result(
    probabilities: np.ndarray,
    choices: Sequence[str],
    question: str,
    *,
    truth: str | None = None,
    facts: Sequence[str] = (),
    importance: Sequence[float] = (),
    no_answer: str | None = None,
) -> Result:
    """The result of one question. The answer is the most probable choice after the last step.

    Args:
        probabilities: (steps, choices), stored as the ``record`` of the result.
        choices: the names of the choices.
        question: the question as the network read it.
        truth: the correct answer, where the question determines it.
        facts: the facts that the network read.
        importance: (facts,) decrease of the answer's probability without each fact.
        no_answer: the choice that means "the facts do not contain the answer"; its status is unsolved.
    """
    best = int(probabilities[-1].argmax())
    answered = choices[best] != no_answer
    return Result(
        status=Status.SOLVED if answered else Status.UNSOLVED,
        answers=choices[best],
        steps=len(probabilities),
        attempts=1,
        confidence=float(probabilities[-1, best]),
        message="" if answered else "The facts do not contain the answer.",
        record=probabilities,
        details={
            "question": question,
            "choices": choices,
            "truth": truth,
            "facts": tuple(facts),
            "importance": tuple(importance),
        },
    )


def top_choices(result: Result, count: int) -> list[list[tuple[str, float]]]:
    """The ``count`` most probable choices after each step, with their probabilities in descending order."""
    order = np.argsort(-result.record, axis=1, kind="stable")[:, :count]
    choices = result.details["choices"]
    return [
        [(choices[index], float(row[index])) for index in best] for row, best in zip(result.record, order, strict=True)
    ]


def important_facts(result: Result, count: int) -> list[tuple[str, float]]:
    """At most ``count`` facts with their importance in descending order, without facts of almost no importance."""
    pairs = zip(result.details["facts"], result.details["importance"], strict=True)
    ranked = sorted(pairs, key=lambda pair: -pair[1])
    return [(fact, importance) for fact, importance in ranked[:count] if importance > LEAST_IMPORTANCE]
