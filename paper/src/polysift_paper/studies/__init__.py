"""The paper's simulations and theorems: claims, measured, drawn and judged."""
