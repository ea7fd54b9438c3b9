"""The queues of an engine: requests that wait, and outputs. Both are objects of the native library."""

from __future__ import annotations

from typing import final

from doorstep._arguments import check_integer
from doorstep._native import rollouts as native
from doorstep._native._generated import MAX_QUEUE_CAPACITY
from doorstep._native.handle import Handle
from doorstep.rollouts.outbox import Outbox
from doorstep.rollouts.outputs import OutputBatch


@final
class RequestQueue:
    """Requests that wait, in the order in which their scheduler wants them. Any thread may use it.

    An engine makes the one where its requests wait; a controller is given it, makes branches of it for the replicas,
    and moves requests to them.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def native_handle(self) -> int:
        """The ds_request_queue."""
        return self._handle.value

    def __len__(self) -> int:
        return int(native.request_queue_info(self.native_handle).waiting)

    def branch(self, capacity: int) -> RequestQueue:
        """A queue with the same rules, to which `move_to()` moves requests of this one.

        Args:
            capacity: requests that wait there at most.

        Raises:
            ArgumentError: it is not 1 to 2**24.
        """
        check_integer("capacity", capacity, 1, MAX_QUEUE_CAPACITY)
        return RequestQueue(native.branch_request_queue(self.native_handle, capacity))

    def move_to(
        self,
        *targets: RequestQueue,
        first: int = 0,
        most: int = MAX_QUEUE_CAPACITY,
        timeout: float | None = 0.0,
    ) -> int:
        """Moves the first requests, in turn to branches of this queue; returns how many found room.

        Args:
            targets: the queues; full and closed ones are passed over.
            first: the target that gets the first request.
            most: requests to move.
            timeout: seconds to wait until there are requests, and room; None: without limit.

        Raises:
            ClosedError: all targets are closed, or this queue is, and nothing waits in it.
        """
        handles = [target.native_handle for target in targets]
        return native.move_requests(self.native_handle, handles, first, most, timeout)

    def close(self) -> None:
        """Refuses further requests; those that wait in a branch wait in its source again."""
        native.close_request_queue(self.native_handle)


@final
class OutputQueue:
    """Results and steps, in the order in which they came.

    Attributes:
        outbox: those that were taken from the library, and that no call has returned yet.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.outbox: Outbox[OutputBatch] = Outbox(OutputBatch.join, lambda batch: batch.num_results)
        self.closed = False

    @property
    def native_handle(self) -> int:
        """The ds_output_queue."""
        return self._handle.value

    def __len__(self) -> int:
        return native.output_count(self.native_handle) + len(self.outbox)

    def close(self) -> None:
        self.closed = True
        native.close_output_queue(self.native_handle)
