"""Where nets compute, how exactly, and how much at once: one setting for all of them, in this process and its workers.

Rankers of nets read it (`rankers.neural.scoring`), as does the training loop. Only `dtype`
changes scores, so only `dtype` is part of a ranker's fingerprint.
"""

from __future__ import annotations

from dataclasses import dataclass

from shaketable.core.errors import BadInput

DEVICES = ("auto", "cpu", "cuda")
DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class DeviceSettings:
    """`device` auto is a GPU where torch sees one; `dtype` "" is what each model says; 0 `batch_tokens` fit the device.

    >>> DeviceSettings(device="tpu")
    Traceback (most recent call last):
    shaketable.core.errors.BadInput: device should be auto, cpu or cuda, not 'tpu'
    """

    device: str = "auto"
    dtype: str = ""
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise BadInput(f"device should be auto, cpu or cuda, not {self.device!r}")
        if self.dtype and self.dtype not in DTYPES:
            raise BadInput(f"dtype should be float32, bfloat16 or float16, not {self.dtype!r}")
        if self.batch_tokens < 0:
            raise BadInput(f"a batch has one token or more, not {self.batch_tokens}")


_current_settings = DeviceSettings()
"""Of this process: rankers are opened deep inside others, and in workers, where no argument reaches."""


def set_device_settings(settings: DeviceSettings) -> None:
    """From now on, for whatever is opened."""
    global _current_settings  # one process, one set of devices
    _current_settings = settings


def get_device_settings() -> DeviceSettings:
    """What was chosen last."""
    return _current_settings
