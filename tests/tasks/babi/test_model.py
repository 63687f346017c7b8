import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rrn import tasks
from rrn.graphs import complete_edges
from rrn.nn.readouts import answer_of
from rrn.tasks.babi.data import EndlessQuestions, SentenceTable, encode
from rrn.tasks.babi.model import (
    POINTS,
    SHORT,
    PaperNetwork,
    RolesNetwork,
    build,
    complete_edges_of,
    distinct_sentences,
)
from rrn.tasks.babi.presets import PRESETS, BabiPreset
from rrn.tasks.babi.stories import Question, Story
from rrn.tasks.babi.vocabulary import WORD_IDS, WORDS
from rrn.training.experiment import Batch

NAMES = [preset.name for preset in PRESETS]
SMALL = {"hidden": 16, "word_width": 8, "update_width": 16, "head_width": 4, "roles": 3, "heads": 2}


def network(name: str, **changes: object) -> nn.Module:
    preset = tasks.find_preset(name)
    assert isinstance(preset, BabiPreset)
    own = {field.name for field in dataclasses.fields(preset)}
    smaller = {name: value for name, value in SMALL.items() if name in own}
    return build(dataclasses.replace(preset, **{**smaller, **changes}))  # type: ignore[arg-type]


def logits(net: nn.Module, batch: Batch, steps: int) -> Tensor:
    return answer_of(net(batch, steps=steps)[0])


@pytest.fixture(scope="module")
def batch() -> Batch:
    """A question of each task, from two facts to twenty."""
    questions = EndlessQuestions(3).take(2)
    return questions.batch(np.arange(0, 40, 2))


def story_batch(facts: list[str], question: str, support: tuple[int, ...] = ()) -> Batch:
    story = Story(1, facts, [Question(question, "kitchen", support, len(facts))])
    return encode([story], SentenceTable()).batch(slice(None))


def test_a_batch_holds_the_words_and_what_supports_the_answer() -> None:
    batch = story_batch(
        ["Mary went to the kitchen.", "John moved to the zoo.", "Mary got the milk."], "Where is Mary?", (2, 0)
    )
    assert batch["sentences"].shape == (1, 4)
    assert batch["words"].shape[:2] == (1, 4)
    first = [WORD_IDS[word] + 1 for word in ("mary", "went", "to", "the", "kitchen")]
    assert batch["words"][0, 0].tolist() == [*first, *[0] * (batch["words"].shape[2] - 5)]
    assert batch["words"][0, 1, 4] == 1  # the unknown word is a word
    assert batch["words"][0, 3, :3].tolist() == [WORD_IDS[word] + 1 for word in ("where", "is", "mary")]
    assert batch["support"].tolist() == [[2, 0, 1]]
    assert batch["answers"].tolist() == [WORD_IDS["kitchen"]]


def test_distinct_sentences_are_all_sentences(batch: Batch) -> None:
    words, which = distinct_sentences(batch)
    assert torch.equal(words[which], batch["words"])
    assert len(words) == len(batch["sentences"].unique())


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_that_every_weight_learns(name: str, batch: Batch) -> None:
    net = network(name).train()
    outputs, _ = net(batch, steps=2)
    loss = answer_of(outputs).square().sum()
    if name in ("babi", "babi-answers"):
        assert outputs.extras["points"].shape == (2, 20, batch["sentences"].shape[1], POINTS)
        loss = loss + outputs.extras["points"].square().sum()
    assert answer_of(outputs).shape == (2, 20, len(WORDS))
    loss.backward()
    still = [key for key, parameter in net.named_parameters() if parameter.grad is None or not parameter.grad.any()]
    assert still == []
    assert logits(net.eval(), batch, 3).shape == (3, 20, len(WORDS))


@pytest.mark.parametrize("name", NAMES)
def test_what_else_is_in_a_batch_changes_no_answer(name: str, batch: Batch) -> None:
    """Neither padding nor the other questions do, whatever their order."""
    net = network(name).eval()
    together = logits(net, batch, 2)
    order = torch.randperm(20)
    shuffled = logits(net, {key: tensor[order] for key, tensor in batch.items()}, 2)
    torch.testing.assert_close(shuffled, together[:, order], atol=1e-5, rtol=1e-4)
    for row in (0, 3, 11):
        count = int(batch["fact_counts"][row])
        kept = [*range(count), batch["sentences"].shape[1] - 1]
        alone = {key: tensor[row : row + 1] for key, tensor in batch.items()}
        alone |= {key: alone[key][:, kept] for key in ("sentences", "words")}
        torch.testing.assert_close(logits(net, alone, 2), together[:, row : row + 1], atol=1e-5, rtol=1e-4)


def test_long_and_short_questions_are_run_apart_and_come_back_in_order(
    batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = batch["fact_counts"]
    assert (counts <= SHORT).any()
    assert (counts > SHORT).any()
    net = network("babi").train()
    apart, _ = net(batch, steps=2)
    monkeypatch.setattr("rrn.tasks.babi.model.SHORT", 100)
    together, _ = net(batch, steps=2)
    torch.testing.assert_close(apart.answer, together.answer, atol=1e-5, rtol=1e-4)
    exists = torch.arange(batch["sentences"].shape[1]) <= counts[:, None]
    points = [run.extras["points"][:, exists] for run in (apart, together)]
    torch.testing.assert_close(*points, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["babi", "babi-paper"])
def test_a_run_resumes_from_its_state(name: str, batch: Batch) -> None:
    net = network(name).eval()
    whole, _ = net(batch, steps=3)
    _, state = net(batch, steps=1)
    rest, _ = net(batch, steps=2, state=state)
    torch.testing.assert_close(answer_of(rest), answer_of(whole)[1:])


@pytest.mark.parametrize("name", ["babi", "babi-paper", "babi-entnet"])
def test_the_order_of_facts_matters(name: str) -> None:
    net = network(name).eval()
    facts = ["Mary went to the kitchen.", "Mary went to the office.", "John went to the garden."]
    one = logits(net, story_batch(facts, "Where is Mary?"), 2)
    other = logits(net, story_batch([facts[1], facts[0], facts[2]], "Where is Mary?"), 2)
    assert not torch.allclose(one, other, atol=1e-4)


def test_edges_of_packed_complete_graphs() -> None:
    edges = complete_edges_of(torch.tensor([1, 3, 2]))
    expected = torch.cat([complete_edges(3) + 1, complete_edges(2) + 4], dim=1)
    assert set(zip(*edges.tolist(), strict=True)) == set(zip(*expected.tolist(), strict=True))
    assert edges[1].tolist() == sorted(edges[1].tolist())


class PlainMessage(nn.Module):
    """Eq. 1 and 2 to the letter, with the weights of a message function."""

    def __init__(self, message: nn.Module) -> None:
        super().__init__()
        self.message = message

    def encode_edges(self, edge_attr: Tensor) -> Tensor:
        return edge_attr

    def forward(self, *arguments: object) -> Tensor:
        return self.message.plain(*arguments)  # type: ignore[operator]


def test_the_papers_network_is_its_plain_form(batch: Batch) -> None:
    """Every sentence of every question encoded, and the whole MLP on every edge."""
    net = network("babi-paper").eval()
    assert isinstance(net, PaperNetwork)
    ours, _ = net(batch, steps=3)
    net.rrn.message = PlainMessage(net.rrn.message)  # type: ignore[assignment]
    every = batch | {"sentences": torch.arange(batch["sentences"].numel()).view_as(batch["sentences"])}
    theirs, _ = net(every, steps=3)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_the_papers_positions_are_moved_in_training_only(batch: Batch) -> None:
    net = network("babi-paper", dropout=0.0, position_shift=20)
    still = [net.eval()(batch, steps=1)[0] for _ in range(2)]
    assert torch.equal(*still)
    moved = [net.train()(batch, steps=1)[0] for _ in range(2)]
    assert not torch.allclose(*moved)
    fixed = network("babi-paper", dropout=0.0, position_shift=0)
    assert torch.equal(fixed.eval()(batch, steps=1)[0], fixed.train()(batch, steps=1)[0])


def test_the_papers_sizes() -> None:
    net = build(tasks.find_preset("babi-paper"))  # type: ignore[arg-type]
    assert isinstance(net, PaperNetwork)
    assert net.facts.lstm.hidden_size == net.question.lstm.hidden_size == 32
    assert net.rrn.features == 32 + 32 + 40
    assert [linear.out_features for linear in net.rrn.message.mlp.linears] == [128] * 4
    assert [linear.out_features for linear in net.rrn.readout.mlp.linears] == [128, 128, 177]  # type: ignore[union-attr, operator]
    assert net.rrn.readout.mlp.first_dropped == 0  # type: ignore[union-attr, operator]


def test_a_learned_word_is_a_learned_answer() -> None:
    """The answer's logits are nearness to word codes: r's output for a word's own code is that word."""
    net = network("babi", word_width=64)
    assert isinstance(net, RolesNetwork)
    codes = net.encoder.words.weight[1:]
    assert torch.equal((codes @ codes.T).argmax(1), torch.arange(len(WORDS)))
