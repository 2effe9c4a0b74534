"""Names of data: paths and URIs, what they have in common, and what a message may show of them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # a single letter is a drive of Windows

_CREDENTIALS = {
    "s3": " (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or s3://key:secret@...; a "
    "store that is not Amazon's needs ?endpoint_override=host:port)",
    "gs": " (GOOGLE_APPLICATION_CREDENTIALS, or gs://anonymous@... for public data)",
    "hdfs": " (JAVA_HOME, HADOOP_HOME and CLASSPATH must lead to libjvm and libhdfs)",
}


@dataclass(frozen=True)
class Address:
    """A URI in parts, since not all of it may be shown.

    Attributes
    ----------
    scheme, login, place, options : str
        What comes before ``://``; user and secret up to the ``@``; host or bucket, and path; from
        ``?`` on, where secrets may be, too.
    """

    scheme: str = ""
    login: str = ""
    place: str = ""
    options: str = ""

    @classmethod
    def of(cls, uri: str) -> Address:
        """Take a URI apart; where it is malformed, what may be a secret counts as one."""
        scheme, _, rest = uri.partition("://")
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        port = authority.partition(":")[2]
        if "@" in authority:
            end = authority.rindex("@") + 1
        elif port and "@" in rest:  # a secret with a slash that is not percent-encoded
            end = rest.rindex("@") + 1
        else:
            end = len(authority) if port and not port.isdigit() else 0
        place, mark, options = rest[end:].partition("?")
        return cls(scheme.lower(), rest[:end], place, mark + options)

    @property
    def uri(self) -> str:
        """The whole, with the path's characters that a URI has no room for percent-encoded."""
        host, slash, path = self.place.partition("/")
        path = quote(path, safe="/%:@!$&'()*+,;=~")
        return f"{self.scheme}://{self.login}{host}{slash}{path}{self.options}"

    @property
    def shown(self) -> str:
        """What a message may say."""
        return f"{self.scheme}://{unquote(self.place)}"

    def censor(self, text: str) -> str:
        """Return the first line of a message of pyarrow's without what must not be shown."""
        login = self.login.removesuffix("@")
        secrets = [login, *login.split(":")] if ":" in login else []
        for name, value in parse_qsl(self.options[1:]):
            if re.search("secret|key|token|password", name.lower()):
                secrets.append(value)
        text = text.replace(self.uri, self.shown)
        for secret in {*secrets, *map(unquote, secrets), self.options}:
            if len(secret) > 3:  # shorter ones are parts of words
                text = text.replace(secret, "...")
        return text.partition("\n")[0][:400].rstrip(". ")

    def unreachable(self, name: str, error: Exception) -> OSError:
        """Return the error that says what to check; raise it ``from None``, to keep secrets."""
        how = _CREDENTIALS.get(self.scheme or name.partition("://")[0], "")
        return OSError(
            f"{name} cannot be reached: {self.censor(str(error))}. Check the address, the network "
            f"and the credentials{how}."
        )


def is_remote(name: str) -> bool:
    """Return whether a name is a URI of something that is not on this machine."""
    return URI.match(name) is not None and not name.lower().startswith("file://")


def local_path(name: str) -> str:
    """Return a path on this machine, of itself or of a file:// URI."""
    if is_remote(name) or not URI.match(name):
        return name
    host, slash, path = name.partition("://")[2].partition("/")
    if host not in ("", "localhost"):
        raise ValueError(f"{name} names the host {host!r}; write file:///path, with three slashes.")
    return unquote(path if os.name == "nt" else slash + path)


def public_name(name: str) -> str:
    """Return a name as messages may show it: a URI without its secrets and options."""
    return Address.of(name).shown if is_remote(name) else name


def identity(name: str) -> str:
    """Return what two names have in common if they stand for the same data."""
    if not is_remote(name):
        return str(Path(local_path(name)).resolve())
    address = Address.of(name)
    return address.shown.rstrip("/") + address.options
