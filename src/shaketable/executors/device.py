"""Device, precision and batch size of networks, set once for this process and its workers.

Neural rankers (`rankers.neural.scoring`) and the training loop read these settings. Only `dtype` changes scores, so
only `dtype` is part of a ranker's fingerprint.
"""

from __future__ import annotations

from dataclasses import dataclass

from shaketable.core.errors import BadInput

DEVICES = ("auto", "cpu", "cuda")
DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class DeviceSettings:
    """Device settings: "auto" uses a GPU if torch finds one; `dtype` "" and `batch_tokens` 0 mean the defaults.

    The default `dtype` is that of each model; the default `batch_tokens` fits the device.

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
            raise BadInput(f"batch_tokens must be at least 1, not {self.batch_tokens}")


_current_settings = DeviceSettings()
"""The settings of this process; global, because nested rankers and workers receive no arguments."""


def set_device_settings(settings: DeviceSettings) -> None:
    """Set the device settings for all models opened from now on."""
    global _current_settings  # one process, one set of devices
    _current_settings = settings


def get_device_settings() -> DeviceSettings:
    """Return the current device settings."""
    return _current_settings
