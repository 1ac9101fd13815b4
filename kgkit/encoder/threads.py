"""Work on a processor that is divided among threads by item: each item is computed by one thread.

Where torch divides a product among threads, the shares of rows decide which are computed by the kernel
for remainders, and with it the last bits. Items of single threads are the same numbers with any number
of threads, and keep the cores of a small model busier.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def on_single_threads(work: Callable[[Iterable[Item]], None], items: Iterable[Item]) -> None:
    """Have *work* done on all items, by as many threads as torch has for one product.

    Args:
        work: function that does it for the items that a thread gets; torch has one thread in it.
        items: items, which are taken one after another by the thread that is free.
    """
    import torch

    threads = torch.get_num_threads()
    if threads == 1:
        work(items)
        return
    source, lock = iter(items), threading.Lock()

    def share() -> Iterator[Item]:
        """Yield the items that one thread gets."""
        while True:
            with lock:
                try:
                    item = next(source)
                except StopIteration:
                    return
            yield item

    def alone() -> None:
        """Do the work of one thread, for which torch has no others."""
        torch.set_num_threads(1)
        work(share())

    try:
        with ThreadPoolExecutor(threads, thread_name_prefix="encoder") as pool:
            for result in [pool.submit(alone) for _ in range(threads)]:
                result.result()
    finally:
        torch.set_num_threads(threads)  # what threads that are yet to come begin with
