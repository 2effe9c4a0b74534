"""polysift: fast polynomial kernel classification for massive data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from polysift._public import *  # noqa: F403
else:
    # Imported when first asked for: the command line answers without waiting for scikit-learn.
    def __getattr__(name: str) -> Any:
        if not name.startswith("_") or name == "__all__":
            homes = vars(import_module("polysift._public"))
            public = {key: value for key, value in homes.items() if not key.startswith("_")}
            known = public | {"__all__": sorted([*public, "__version__"])}
            if name in known:
                globals().update(known)
                return known[name]
        raise AttributeError(f"module 'polysift' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
