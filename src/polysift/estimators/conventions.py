"""What scikit-learn's tools expect of an estimator beside ``fit`` and ``predict``.

``PolysiftEstimator`` has the tags and the link to the documentation that all estimators share, and
``available_when`` makes methods that are there for some parameters only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, update_wrapper, wraps
from importlib.metadata import PackageNotFoundError, metadata
from types import MethodType
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

API_PAGE = "api/generated/polysift.{estimator_name}.html"
"""The page of an estimator, in the documentation."""


class PolysiftEstimator:
    """Base of the estimators: which rows they take, and where their pages are."""

    _doc_link_module = "polysift"

    @property
    def _doc_link_template(self) -> str:
        """The address that the HTML representation links to, or "" where there is none."""
        return doc_link_template()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        rows = tags.input_tags
        rows.sparse = rows.allow_nan = rows.categorical = rows.string = True
        tags.array_api_support = True
        return tags


@cache
def doc_link_template() -> str:
    """Return the address of an estimator's page, by that of the documentation in the metadata.

    "" if the installed package names none, or there is no metadata.
    """
    try:
        urls = metadata("polysift").get_all("Project-URL") or []
    except PackageNotFoundError:  # a tree on the path that was not installed
        return ""
    for url in urls:
        label, _, address = url.partition(", ")
        if label.lower() == "documentation":
            return f"{address.rstrip('/')}/{API_PAGE}"
    return ""


class AvailableMethod:
    """A method that is there if a check of the instance passes.

    Unlike that of scikit-learn's ``available_if``, the error is the check's own, which says what to
    set, and has no other in front of it.

    Parameters
    ----------
    method : callable
        The method.
    check : callable
        Takes the instance; raises an AttributeError if it has no such method.
    """

    def __init__(self, method: Callable[..., Any], check: Callable[[Any], object]) -> None:
        self.method, self.check = method, check
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., Any]:
        if instance is not None:
            self.check(instance)
            return MethodType(self.method, instance)

        @wraps(self.method)
        def unbound(instance: Any, *args: Any, **kwargs: Any) -> Any:
            return self.__get__(instance)(*args, **kwargs)

        return unbound


def available_when(check: Callable[[Any], object]) -> Callable[[Method], Method]:
    """Return a decorator of methods that are there if a check passes; see ``AvailableMethod``."""

    def decorate(method: Method) -> Method:
        made: Any = AvailableMethod(method, check)
        return made

    return decorate
