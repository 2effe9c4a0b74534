"""From a row to its features: scaled columns, centers, the kernel, the survey."""
