"""The choice of parameters: candidates, compared by successive halving on rows held out."""
