"""A lane: a thread bound to a device that takes batches and runs them. Runs on: worker thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from ..batcher.dispatcher import Dispatcher
from ..batcher.target import Batch
from ..core.clock import LoopClock
from . import execution


class Lane:
    """One worker thread. `on_death(lane, error)` runs on the event loop if the thread ends other than by `stop`."""

    def __init__(
        self,
        name: str,
        device: str,
        dispatcher: Dispatcher,
        clock: LoopClock,
        on_death: Callable[[Lane, BaseException], None],
    ) -> None:
        self.name = name
        self.device = device
        self.batch: Batch | None = None  # what it is running; the supervisor answers it if the lane dies
        self._dispatcher = dispatcher
        self._clock = clock
        self._on_death = on_death
        self._inbox: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> None:
        """Begin to take batches."""
        self._thread.start()

    def wake(self) -> None:
        """Something is ready; see `ParkedLane`."""
        self._inbox.put(True)

    def stop(self) -> None:
        """End after the batch that is running."""
        self._dispatcher.forget_lane(self, self.device)
        self._inbox.put(False)

    def join(self, timeout_s: float) -> bool:
        """True if the thread has ended within `timeout_s` seconds."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _main(self) -> None:
        try:
            self._work()
        except BaseException as error:
            # Whatever ends a lane (SystemExit from user code, MemoryError between two steps) must be seen.
            self._clock.call_soon_threadsafe(self._on_death, self, error)

    def _work(self) -> None:
        dispatcher, now_ns, soon = self._dispatcher, self._clock.now_ns, self._clock.call_soon_threadsafe
        finished: Batch | None = None
        while True:
            batch = dispatcher.take(self, self.device, finished)
            if batch is None:
                finished = None
                if not self._inbox.get():
                    return
                continue
            self.batch = batch
            execution.run(batch, now_ns)
            self.batch = None
            finished = batch
            soon(dispatcher.finish, batch)
