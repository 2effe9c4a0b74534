"""The same engine by the workers of a cluster. Only this room imports Ray."""
