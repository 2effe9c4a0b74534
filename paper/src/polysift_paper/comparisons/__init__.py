"""The paper's tables on real data: systems on sets, beside the printed figures."""
