"""The place that the rivals had before they became a distribution of their own."""

raise ImportError(
    "polysift.rivals is polysift_paper.rivals now, in a distribution of its own. Install it: "
    "pip install polysift-paper (in a checkout: pip install ./paper)"
)
