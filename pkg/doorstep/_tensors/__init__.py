"""Tensors of other libraries: read into one record, ForeignTensor, and checked in one place."""
