"""How a model is reached: its limits, its response cache, and one file per protocol."""
