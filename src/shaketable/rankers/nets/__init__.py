"""Neural rankers as torch modules, one small file for each paper."""

import os

# Some virtual machines announce the tiles of newer processors (AMX) and do not grant them: the first bfloat16 product then
# ends the process. The library below torch reads this when it is first asked; who has tiles that work may set it higher.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
