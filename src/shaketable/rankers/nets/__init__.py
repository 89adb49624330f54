"""The neural rankers' torch modules, each one paper's equations; imported where a model is opened or trained only."""
