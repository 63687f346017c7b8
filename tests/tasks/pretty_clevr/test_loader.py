import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from rrn.tasks.pretty_clevr import data, loader


@pytest.fixture(scope="module")
def scenes() -> data.Scenes:
    return data.scenes("valid", 12)


def test_states_batched_by_a_plain_dataloader(scenes: data.Scenes) -> None:
    dataset = loader.StateQuestions(scenes)
    assert len(dataset) == 12 * 128
    batch = next(iter(DataLoader(dataset, batch_size=32, shuffle=True)))
    assert {name: (tuple(value.shape), value.dtype) for name, value in batch.items()} == {
        "positions": ((32, 8, 2), torch.float32),
        "colours": ((32, 8), torch.int64),
        "shapes": ((32, 8), torch.int64),
        "start": ((32,), torch.int64),
        "jumps": ((32,), torch.int64),
        "answer": ((32,), torch.int64),
        "path": ((32, 8), torch.int64),
    }


def test_every_question_comes_once_with_its_answer(scenes: data.Scenes) -> None:
    dataset = loader.StateQuestions(scenes)
    seen = set()
    for batch in DataLoader(dataset, 100, shuffle=True, generator=torch.Generator().manual_seed(1)):
        for k in range(len(batch["answer"])):
            colours, start, jumps = batch["colours"][k].numpy(), int(batch["start"][k]), int(batch["jumps"][k])
            index = next(i for i in range(12) if (scenes.positions[i] == batch["positions"][k].numpy()).all())
            assert (scenes.colours[index] == colours).all()
            assert (scenes.shapes[index] == batch["shapes"][k].numpy()).all()
            assert int(batch["answer"][k]) == scenes.scene(index).answer(start, jumps)
            seen.add((index, start, jumps))
    assert len(seen) == 12 * 128


def test_one_by_one_and_stacked_are_the_same(scenes: data.Scenes) -> None:
    dataset = loader.StateQuestions(scenes)
    wanted = [5, 700, 1535, 5]
    stacked = dataset[wanted]
    for row, index in enumerate(wanted):
        for name, value in dataset[index].items():
            assert torch.equal(stacked[name][row], value)
    assert torch.equal(dataset[-1]["answer"], dataset[1535]["answer"])
    with pytest.raises(IndexError):
        dataset[1536]


def test_augmentation_differs_each_time_and_follows_the_seed(scenes: data.Scenes) -> None:
    dataset = loader.StateQuestions(scenes, augment=True)
    torch.manual_seed(4)
    first, second = dataset[[0, 1]]["positions"], dataset[[0, 1]]["positions"]
    assert not torch.equal(first, second)
    torch.manual_seed(4)
    assert torch.equal(first, dataset[[0, 1]]["positions"])
    assert (data.find_paths(data.squared_distances(first.numpy())) == scenes.paths[[0, 0]]).all()


def test_workers_augment_differently(scenes: data.Scenes) -> None:
    dataset = loader.StateQuestions(scenes[:2], augment=True)
    found = [batch["positions"] for batch in DataLoader(dataset, 64, num_workers=2)]
    assert len(found) == 4
    assert len({positions.numpy().tobytes() for positions in found}) == 4


def modules_after(imports: str) -> set[str]:
    code = f"import sys; {imports}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_the_generator_does_without_torch() -> None:
    loaded = modules_after("import rrn.tasks.pretty_clevr.data, rrn.tasks.pretty_clevr.figures")
    assert "rrn.tasks.pretty_clevr.figures" in loaded
    assert "torch" not in loaded


def test_any_number_can_be_stacked(scenes: data.Scenes) -> None:
    dataset = loader.StateQuestions(scenes)
    assert len(dataset[np.arange(0)]["answer"]) == 0
    assert dataset[np.arange(1536)]["positions"].shape == (1536, 8, 2)
