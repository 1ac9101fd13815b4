"""Signals: what processes get of them that are starting."""

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children, get_context

import pytest

from kgkit.building.engines.parts import outlive_no_parent
from kgkit.signals import interrupts_blocked


def test_a_process_of_a_pool_starts_although_ctrl_c_is_pressed(capfd):
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=outlive_no_parent) as pool:
        with interrupts_blocked():
            task = pool.submit(abs, -1)
        (child,) = active_children()
        os.kill(child.pid, signal.SIGINT)
        assert task.result() == 1
    assert capfd.readouterr().err == ""


def test_the_caller_is_interrupted_after_the_block():
    begun = ended = False
    with pytest.raises(KeyboardInterrupt):
        with interrupts_blocked():
            begun = True
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            ended = True
        raise AssertionError("not interrupted")
    assert begun and ended
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
