"""Advantages in double-precision numpy, written from the papers' sums, not from their recursions."""

import numpy as np


def generalized_advantages(rewards, values, next_values, terminations, truncations, *, gamma, lam):
    """Schulman et al., equation 16: the sum of (gamma lambda)**l errors[t + l], up to the end of the episode."""
    errors = rewards + gamma * np.where(terminations, 0.0, next_values) - values
    ended = terminations | truncations
    advantages = np.zeros_like(rewards)
    steps, columns = rewards.shape
    for column in range(columns):
        for start in range(steps):
            for step in range(start, steps):
                advantages[start, column] += (gamma * lam) ** (step - start) * errors[step, column]
                if ended[step, column]:
                    break
    return advantages


def v_trace(log_ratios, rewards, values, next_values, terminations, truncations, *, gamma, lam, rho_clip, c_clip):
    """Espeholt et al., equation 1, and the advantages of section 4.2, with v of the next state where there is one."""
    ratios = np.exp(log_ratios)
    rho, c = np.minimum(rho_clip, ratios), lam * np.minimum(c_clip, ratios)
    bootstrap = np.where(terminations, 0.0, next_values)
    errors = rho * (rewards + gamma * bootstrap - values)
    ended = terminations | truncations
    targets = values.astype(np.float64)
    steps, columns = rewards.shape
    for column in range(columns):
        for start in range(steps):
            for step in range(start, steps):
                passed = np.prod(c[start:step, column])
                targets[start, column] += gamma ** (step - start) * passed * errors[step, column]
                if ended[step, column]:
                    break
    following = bootstrap.copy()
    goes_on = ~ended[:-1]
    # The value of what followed, corrected as the value of the next state is.
    following[:-1][goes_on] += (targets[1:] - values[1:])[goes_on]
    return rho * (rewards + gamma * following - values), targets
