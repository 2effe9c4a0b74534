"""``polysift reproduce``: an entry point of the group ``polysift.commands``."""

from __future__ import annotations

from polysift_paper.commands import app
from polysift_paper.comparison_commands import highdim, massive, uci

for command in (uci, massive, highdim):
    app.command()(command)
