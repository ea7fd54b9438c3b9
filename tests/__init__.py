"""A package, so that no other one of this name hides it, which a folder without this file would let happen."""
