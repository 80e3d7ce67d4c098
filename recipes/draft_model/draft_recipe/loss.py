"""The divergence of the student from the teacher's labels, and its gradient, a few rows at a time.

A label names the teacher's most probable tokens and their chances p; all other tokens are
one rest. With q the student's chances, the loss is the divergence of that short list:

    sum over named j of p_j log(p_j / q_j)  +  p_rest log(p_rest / q_rest)

Its gradient in the logits is q_j - p_j for named tokens and q_j (1 - p_rest / q_rest) for
the others. A share of p is put on the most probable token alone: it is the one to agree on.
"""

from dataclasses import dataclass

import torch

from .blocks import Labels

_SMALLEST = 1e-6


@dataclass
class HeadResult:
    loss: torch.Tensor  # weighted sum, no gradient
    n_agreed: torch.Tensor  # weighted: positions whose first named token is the student's best named one
    hidden_grad: torch.Tensor  # (position, width)


def targets(labels: Labels, hard_share: float) -> torch.Tensor:
    """(position, label) chances to learn; what a row lacks to 1 is the rest's."""
    p = labels.chances.float() * (1 - hard_share)
    p[:, 0] += hard_share
    return p


@torch.no_grad()
def head_loss(
    hidden, embedding, labels: Labels, weights, embedding_grad, hard_share: float, at_once: int
) -> HeadResult:
    """hidden: (position, width); adds the head's own gradient to `embedding_grad` (float32)."""
    total = torch.zeros((), device=hidden.device)
    agreed = torch.zeros((), device=hidden.device)
    grads = []
    for begin in range(0, len(hidden), at_once):
        part = slice(begin, begin + at_once)
        label, weight = labels.part(part), weights[part, None]
        named, p = label.token_ids(), targets(label, hard_share)
        logits = hidden[part] @ embedding.T
        q = torch.softmax(logits, -1, dtype=torch.float32)
        q_named = q.gather(-1, named)
        p_rest = (1 - p.sum(-1, keepdim=True)).clamp_min(0)
        q_rest = (1 - q_named.sum(-1, keepdim=True)).clamp_min(_SMALLEST)
        agreed += (weight[:, 0] * (q_named.argmax(-1) == 0)).sum()
        total += (weight[:, 0] * (_divergence(p, q_named).sum(-1) + _divergence(p_rest, q_rest)[:, 0])).sum()
        q.mul_(weight * (1 - p_rest / q_rest))
        q.scatter_(-1, named, weight * (q_named - p))
        gradient = q.to(hidden.dtype)
        grads.append(gradient @ embedding)
        embedding_grad.add_(gradient.T @ hidden[part])
    return HeadResult(total, agreed, torch.cat(grads))


def _divergence(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    return torch.xlogy(p, p) - p * q.clamp_min(_SMALLEST).log()
