"""The paper's experiments, as studies that can be run, drawn and judged."""
