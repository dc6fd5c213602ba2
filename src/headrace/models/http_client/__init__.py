"""What protocols over HTTP share: connections, bodies, refusals, headers about rates."""
