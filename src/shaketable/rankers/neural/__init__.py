"""The torch modules of the neural rankers; import them only where a model is opened or trained."""

import os

# Some virtual machines report AMX support but do not allow it: the first bfloat16 product then ends the process.
# oneDNN reads this variable once; set it higher on a machine where AMX works.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
