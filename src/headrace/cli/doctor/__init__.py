"""`headrace doctor`: what is installed, what this host can do (installed, host), and saying so (report)."""
