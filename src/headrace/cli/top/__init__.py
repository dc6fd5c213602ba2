"""`headrace top`: what the page lists, at the terminal (top_command), as lines that fit it (top_lines)."""
