"""The environment once more, in plain double-precision numpy, written from its description and from nothing else.

It computes what can be computed without a physics engine: random numbers, levels, observations, lidar, button and
reward rules. Tests compare the library with it. It is slow and obvious on purpose, and it shares no code with the
package: a mistake would have to be made twice to stay unseen.
"""
