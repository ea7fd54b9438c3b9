"""Documents in which something is wrong."""

JUNK = [None, True, -1, 0, 1e300, 10**400, "", "x", [], {}, [[]], {"x": 1}, [1, 2], [{}], "\ud800"]


def damaged(value, generator):
    """A copy in which something, somewhere, is junk or missing."""
    if generator.random() < 0.2 or not isinstance(value, (dict, list)) or not value:
        return generator.choice(JUNK)
    items = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    key = generator.choice(list(items))
    if generator.random() < 0.1:
        del items[key]
    else:
        items[key] = damaged(items[key], generator)
    return items if isinstance(value, dict) else list(items.values())
