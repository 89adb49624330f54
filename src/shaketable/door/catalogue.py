"""What there is to choose from, beside the catalogues."""

from __future__ import annotations

from shaketable.measure.effectiveness import EXAMPLES as MEASURE_EXAMPLES

__all__ = ["MEASURE_EXAMPLES"]
