"""Behaviour tests: what does a ranker prefer, of two texts that differ in one thing?

One file for each way to come by such texts. A probe is a class and a row in `registry.PROBES`.

MacAvaney, Feldman, Goharian, Downey, Cohan. ABNIRML: Analyzing the behavior of neural IR models. TACL 2022.
"""
