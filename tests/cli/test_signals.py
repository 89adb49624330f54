"""Handlers of signals while a command runs."""

from __future__ import annotations

import signal

import pytest

from shaketable.cli.signals import STOP_SIGNALS, get_interrupt_exit_code, interrupt_on_stop_signals


@pytest.fixture
def default_handlers():
    """The handlers of a program that a shell starts; those of the tests are back afterwards."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_stop_signals_interrupt_a_command_and_have_their_defaults_afterwards(default_handlers):
    for number in STOP_SIGNALS:
        with pytest.raises(KeyboardInterrupt), interrupt_on_stop_signals():
            signal.raise_signal(number)
        assert get_interrupt_exit_code() == 128 + number
        assert {signal.getsignal(one) for one in STOP_SIGNALS} == {signal.SIG_DFL}


def test_other_handlers_stay(default_handlers):
    number = STOP_SIGNALS[0]
    signal.signal(number, signal.SIG_IGN)
    with interrupt_on_stop_signals():
        assert signal.getsignal(number) is signal.SIG_IGN
    assert signal.getsignal(number) is signal.SIG_IGN
