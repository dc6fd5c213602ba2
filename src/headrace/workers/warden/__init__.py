"""The warden: the process that forks workers, watches their memory and kills those above their limit."""
