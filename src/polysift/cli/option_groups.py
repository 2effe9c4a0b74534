"""Groups of options as dataclasses, so that commands share them and stay short."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses as parameters, each field of which becomes an option."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    flat: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        hint = hints[name]
        if not is_dataclass(hint):
            flat.append(parameter.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY))
            continue
        groups[name] = hint
        own = get_type_hints(hint, include_extras=True)
        flat += [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=own[field.name],
            )
            for field in fields(hint)
        ]

    @wraps(command)
    def run(**options: Any) -> None:
        made = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**options, **made)

    run.__signature__ = Signature(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return run
