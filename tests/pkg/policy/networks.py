"""Networks of PyTorch, and what they compute by themselves."""

import copy
import functools

import numpy as np
import torch
from torch import nn

import doorstep

NUM_INPUTS = 94
NUM_LOGITS = sum(doorstep.ACTIONS)
STARTS = np.cumsum(doorstep.ACTIONS)[:-1]  # of the components behind the first in a row of logits


def mlp(*widths, activation=nn.Tanh):
    layers = []
    for inputs, outputs in zip((NUM_INPUTS, *widths), widths, strict=False):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers, nn.Linear((NUM_INPUTS, *widths)[-1], NUM_LOGITS))


def tokens(*modules, shape=(5, 12), outputs=60):
    return [nn.Unflatten(1, shape), *modules, nn.Flatten(), nn.Linear(outputs, NUM_LOGITS)]


sequence, image = functools.partial(tokens, shape=(2, 30)), functools.partial(tokens, shape=(3, 9, 12))


def encoder_layer(**options):
    return nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, **options)


def attention(width=12, heads=4, **options):
    return nn.MultiheadAttention(width, heads, **{"batch_first": True, **options})


def late_infinity():
    """Its logits are infinite as soon as less than half of an episode is left."""
    first, last = nn.Linear(NUM_INPUTS, 1), nn.Linear(1, NUM_LOGITS)
    with torch.no_grad():
        first.weight.zero_()[0, -2] = -1e10
        first.bias.fill_(5e9)
        last.weight.fill_(3e38)
    return nn.Sequential(first, nn.ReLU(), last)


def constant(*logits, **options):
    """A policy with the same logits for every observation."""
    net = nn.Linear(NUM_INPUTS, NUM_LOGITS)
    with torch.no_grad():
        net.weight.zero_()
        net.bias.copy_(torch.tensor(logits))
    return doorstep.load_policy(net, **options)


def observe(*shape, seed=0):
    return torch.randn(*shape, NUM_INPUTS, generator=torch.Generator().manual_seed(seed))


def logits_of(module, observations):
    with torch.no_grad():
        return module(observations).numpy()


def randomised(modules):
    """Biases and norms begin as zeros and ones."""
    with torch.no_grad():
        for module in modules:
            for parameter in module.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return modules


@torch.no_grad()
def exact(modules, observations, states=None):
    """What a sequence of modules computes of rows in double precision. states: of its memory, {} at the beginning;
    changed in place."""
    values = torch.as_tensor(observations).double().flatten(0, -2)
    states = {} if states is None else states
    for index, module in enumerate(copy.deepcopy(module).double().eval() for module in modules):
        if isinstance(module, nn.MultiheadAttention):
            values = module(values, values, values)[0]
        elif isinstance(module, (nn.LSTM, nn.GRU)):
            time = 1 if module.batch_first else 0
            values, states[index] = module(values.unsqueeze(time), states.get(index))
            values = values.squeeze(time)
        elif isinstance(module, (nn.LSTMCell, nn.GRUCell)):
            states[index] = module(values, states.get(index))
            values = states[index][0] if isinstance(module, nn.LSTMCell) else states[index]
        else:
            values = module(values)
    return values.reshape(*observations.shape[:-1], -1).numpy()


def chances(logits, sampling):
    """The probability of each value of each component, side by side as the logits are: by definition."""
    found = []
    for part in np.split(np.asarray(logits, np.float64), STARTS, axis=-1):
        if sampling.greedy or sampling.temperature == 0:
            found.append(np.eye(part.shape[-1])[part.argmax(-1)])
            continue
        weights = np.exp((part - part.max(-1, keepdims=True)) / sampling.temperature)
        weights /= weights.sum(-1, keepdims=True)
        order = np.argsort(-weights, axis=-1, kind="stable")
        falling = np.take_along_axis(weights, order, -1)
        falling[falling.cumsum(-1) - falling >= sampling.top_p] = 0  # the fewest that reach it are left
        np.put_along_axis(weights, order, falling, -1)
        found.append(weights / weights.sum(-1, keepdims=True))
    return np.concatenate(found, -1)


def chance_of(chosen, shares):
    """The product of the probabilities of the values that actions [..., 4] chose."""
    return np.take_along_axis(shares, chosen + np.array([0, *STARTS]), -1).prod(-1)


def assert_chosen(actions, log_probs, logits, sampling):
    """Actions have largest logits or probabilities, and logarithms are those of what was chosen."""
    if sampling.greedy or sampling.temperature == 0:
        for component, part in enumerate(np.split(logits, STARTS, axis=-1)):
            largest = np.take_along_axis(part, actions[..., component, None], -1)[..., 0]
            assert (largest > part.max(-1) - 1e-3).all()
        assert (log_probs == 0).all()
        return
    expected = chance_of(actions, chances(logits, sampling))
    with np.errstate(divide="ignore"):
        near = np.isclose(log_probs, np.log(expected), atol=1e-3)
    shifted = () if sampling.top_p == 1 else (sampling.top_p - 1e-4, sampling.top_p + 1e-4)
    moved = [chances(logits, sampling.replace(top_p=top_p)) for top_p in shifted]
    unsure = np.any([chance_of(actions, other) != expected for other in moved], axis=0)  # rounding decides
    assert (near | unsure).all()
