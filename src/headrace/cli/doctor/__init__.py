"""`headrace doctor` reports what is installed (installed) and which limits hold on this machine (machine, report)."""
