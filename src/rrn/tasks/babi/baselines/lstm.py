"""One LSTM over all words of the facts and the question."""

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from rrn.nn.updates import State
from rrn.tasks.babi.presets import LSTMPreset
from rrn.tasks.babi.vocabulary import WORDS
from rrn.training.experiment import Batch


class StoryLSTM(nn.Module):
    """It has no steps."""

    def __init__(self, preset: LSTMPreset) -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS) + 1, preset.word_width, padding_idx=0)
        self.lstm = nn.LSTM(preset.word_width, preset.hidden, batch_first=True)
        self.answer = nn.Linear(preset.hidden, len(WORDS))

    def forward(self, batch: Batch, *, steps: int, state: State | None = None) -> tuple[Tensor, State]:
        """Logits of the answer, the same at every step: (steps, n, 177)."""
        words = batch["words"].flatten(1)
        known = words > 0
        words = words.gather(1, (~known).int().argsort(dim=1, stable=True))
        lengths = known.sum(1)
        packed = pack_padded_sequence(
            self.words(words[:, : int(lengths.max())]), lengths, batch_first=True, enforce_sorted=False
        )
        _, (last, _) = self.lstm(packed)
        logits = self.answer(last[0])
        return logits.expand(steps, -1, -1), State(logits)
