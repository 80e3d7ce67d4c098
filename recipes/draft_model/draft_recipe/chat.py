"""Conversations as tokens: whose turn is where."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ChatIds:
    """How an assistant's turn begins: these two tokens, one after the other."""

    turn: int
    assistant: int


@dataclass
class Batch:
    """What to continue. Temperatures are per prompt: of the assistant's turns and of all others."""

    prompts: list[np.ndarray]
    answer_heat: np.ndarray
    other_heat: np.ndarray


def chat_ids(head: np.ndarray, tail: np.ndarray) -> ChatIds:
    """The tail holds one turn's beginning: the same token that the head begins with."""
    turn = int(head[0])
    return ChatIds(turn, int(tail[np.flatnonzero(tail == turn)[0] + 1]))


def first_answer(row: np.ndarray, tail: np.ndarray, ids: ChatIds) -> slice:
    """Where the first answer of a conversation lies, without the token that ends it; at the row's end without one."""
    begins = np.flatnonzero((row[:-1] == ids.turn) & (row[1:] == ids.assistant))
    if not len(begins):
        return slice(len(row), len(row))
    header = len(tail) - int(np.flatnonzero(tail == ids.turn)[0])
    begin = int(begins[0]) + header
    ends = np.flatnonzero(row[begin:] == tail[0])
    return slice(begin, begin + int(ends[0]) if len(ends) else len(row))


def in_answers(tokens: np.ndarray, ids: ChatIds) -> np.ndarray:
    """(row, column): whether the token is of an assistant's turn, after the two that open it."""
    columns = np.arange(tokens.shape[1])
    begin = np.maximum.accumulate(np.where(tokens == ids.turn, columns, -1), axis=1)
    role = np.take_along_axis(tokens, np.minimum(begin + 1, tokens.shape[1] - 1), axis=1)
    return (begin >= 0) & (role == ids.assistant) & (columns >= begin + 2)
