"""The neural rankers' torch modules, each one paper's equations; imported where a model is opened or trained only."""

import os

# Some virtual machines announce the tiles of newer processors (AMX) and do not grant them: the first bfloat16 product
# then ends the process. The library below torch reads this once; set it higher on a machine whose tiles work.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
