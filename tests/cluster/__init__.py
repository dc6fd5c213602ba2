"""Work on the nodes of a real Ray cluster, several of them on this machine."""
