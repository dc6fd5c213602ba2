"""The engine file of agent runs: its tables and its journal."""
