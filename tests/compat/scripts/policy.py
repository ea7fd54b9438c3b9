"""The policy of train.py: one linear layer, four categorical heads."""

# mypy: ignore-errors

import torch
from torch import nn

CHOICES = (4, 8, 5, 2)


class Policy(nn.Module):
    """Maps features to an action of four components."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.logits = nn.Linear(features, sum(CHOICES))

    def act(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Samples int32 actions [N, A, 4]; also the sum of their log probabilities [N, A, 1]."""
        heads = [
            torch.distributions.Categorical(logits=logits) for logits in self.logits(observations).split(CHOICES, dim=2)
        ]
        chosen = torch.stack([head.sample() for head in heads], dim=2)
        log_probability = sum(head.log_prob(chosen[..., i]) for i, head in enumerate(heads))
        return chosen.to(torch.int32), log_probability.unsqueeze(2)
