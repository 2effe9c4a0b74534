"""The entry point of the command ``polysift``, and of ``python -m polysift``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from polysift.runtime.terminal import escape_output

        escape_output()  # also what Python prints when a command ends by an error that is a bug
        from polysift.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("The command line needs typer and rich. Install it: pip install 'polysift[cli]'")
    except KeyboardInterrupt:  # later ones are the commands' own
        sys.exit(130)
    app()


if __name__ == "__main__":
    main()
