"""What the paper's table compares with: networks of others, on the same batches."""

from rrn.tasks.babi.baselines.entnet import EntNet
from rrn.tasks.babi.baselines.lstm import StoryLSTM
from rrn.tasks.babi.baselines.memn2n import MemN2N

__all__ = ["EntNet", "MemN2N", "StoryLSTM"]
