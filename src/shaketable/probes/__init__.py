"""Probes: which of two texts that differ in one thing does a ranker prefer?

Each module has one source of such texts. A probe is a class and a row of `core.registries.PROBES`.

MacAvaney, Feldman, Goharian, Downey, Cohan. ABNIRML: Analyzing the behavior of neural IR models. TACL 2022.
"""
