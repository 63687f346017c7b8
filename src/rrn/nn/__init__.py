"""The parts of a recurrent relational network: messages, updates, readouts and losses."""

from rrn.nn.layers import MLP
from rrn.nn.losses import accuracy_by_step, cross_entropy, every_step, last_step, squared_error, step_losses
from rrn.nn.messages import AttentionMessage, GatedMessage, GroupMessage, Message, MLPMessage
from rrn.nn.pointers import pointer_losses, pointers
from rrn.nn.readouts import DotReadout, EdgeReadout, GraphReadout, NodeReadout, Outputs, Readout
from rrn.nn.updates import (
    GRUUpdate,
    LSTMUpdate,
    MLPUpdate,
    NoUpdate,
    ResidualUpdate,
    SharedLayerUpdate,
    State,
    Update,
)

__all__ = [
    "MLP",
    "AttentionMessage",
    "DotReadout",
    "EdgeReadout",
    "GRUUpdate",
    "GatedMessage",
    "GraphReadout",
    "GroupMessage",
    "LSTMUpdate",
    "MLPMessage",
    "MLPUpdate",
    "Message",
    "NoUpdate",
    "NodeReadout",
    "Outputs",
    "Readout",
    "ResidualUpdate",
    "SharedLayerUpdate",
    "State",
    "Update",
    "accuracy_by_step",
    "cross_entropy",
    "every_step",
    "last_step",
    "pointer_losses",
    "pointers",
    "squared_error",
    "step_losses",
]
