"""How a model is reached: one small contract, one file per protocol."""
