"""A small GPT that predicts the next character, and the text it learns: Python's own help on its language, which every
Python contains."""

from __future__ import annotations

from pydoc_data.topics import topics

import torch
from torch import nn
from torch.nn.functional import cross_entropy

#: Characters that a prediction may depend on.
CONTEXT = 16

_BATCH = 1
_TEST_SHARE = 0.1
#: Sequences of the held-out text that a loss is the mean of.
_TEST_BATCH = 256

#: Printable ASCII and the end of a line; every other character is a question mark.
_ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
_NUMBERS = {character: number for number, character in enumerate(_ALPHABET)}


class GPT(nn.Module):
    """A transformer of 114,000 parameters. Its embeddings are `token.weight` and `position.weight`."""

    def __init__(self, width: int = 64, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.token = nn.Embedding(len(_ALPHABET), width)
        self.position = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width,
                heads,
                4 * width,
                dropout=0,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(_ALPHABET))
        future = torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        """Returns the logits of the character after each of `characters`, whose shape is (batch, CONTEXT)."""
        values = self.token(characters) + self.position.weight
        for block in self.blocks:
            values = block(values, self.future)
        return self.head(self.norm(values))

    def loss(self, sequences: torch.Tensor) -> torch.Tensor:
        """Returns the mean cross entropy of sequences of CONTEXT + 1 characters."""
        logits = self(sequences[:, :-1])
        return cross_entropy(logits.flatten(0, 1), sequences[:, 1:].flatten())


class Text:
    """The text as numbers: nine tenths to train on, and the rest to test with; the same in every process."""

    def __init__(self) -> None:
        text = "\n".join(topics[name] for name in sorted(topics))
        numbers = torch.tensor([_NUMBERS.get(character, _NUMBERS["?"]) for character in text])
        held_out = int(_TEST_SHARE * len(numbers))
        self._train, self._test = numbers[:-held_out], numbers[-held_out:]

    def batch(self, generator: torch.Generator) -> torch.Tensor:
        """Takes sequences of CONTEXT + 1 characters from anywhere in the text to train on."""
        return _sequences(self._train, _BATCH, generator)

    @torch.no_grad()
    def test_loss(self, model: GPT) -> float:
        """Returns the loss of the model on the same sequences of the held-out text each time."""
        return model.loss(
            _sequences(self._test, _TEST_BATCH, torch.Generator().manual_seed(1))
        ).item()


#: Characters that an inner step learns from.
TOKENS_PER_STEP = _BATCH * CONTEXT


def _sequences(numbers: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    begins = torch.randint(len(numbers) - CONTEXT, (count, 1), generator=generator)
    return numbers[begins + torch.arange(CONTEXT + 1)]
