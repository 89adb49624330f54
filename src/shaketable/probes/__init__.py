"""Probes: tests of which of two texts that differ in one property a ranker prefers.

Each module holds one source of text pairs. A probe is a class and a row of `core.registries.PROBES`.

MacAvaney, Feldman, Goharian, Downey, Cohan. ABNIRML: Analyzing the behavior of neural IR models. TACL 2022.
"""
