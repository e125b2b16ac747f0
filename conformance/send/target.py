"""The target: its address, the key, and the header fields and query parameters that the user adds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from conformance import __version__
from conformance.model import Credential, RequestCase
from conformance.model.redaction import is_secret, without_userinfo
from conformance.model.secret_forms import is_common

WRONG_KEY: Final = "sk-conformance-wrong-key-0000000000000000"
_FIELD_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Target:
    """One endpoint. The operation's `path` is appended to `base_url`; every request has `headers` and `query`."""

    base_url: str
    path: str
    key: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    proxy_from_env: bool = False
    credentials: tuple[str, ...] = ()  # header fields and query parameters that are credentials despite their names
    key_variable: str = ""  # the environment variable that the key comes from
    canary: str = field(default="", repr=False)  # replaces the fixed wrong key, and is masked like the real key
    keep_undecodable: bool = False  # keep bytes that could hide the key in a form that nobody can read
    embedded: bool = False  # the reference that this suite serves itself

    def __post_init__(self) -> None:
        """Raise ValueError, with one line, for anything that cannot be sent."""
        printable = without_userinfo(self.base_url)
        try:
            parts = urlsplit(self.base_url)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise ValueError(
                f"base URL {printable!r} cannot be read: {str(error).replace(self.base_url, printable)}"
            ) from None
        if parts.scheme not in {"http", "https"} or not host:
            raise ValueError(f"base URL is {printable!r}; expected http://host[:port][/path] or https://…")
        if "@" in parts.netloc:
            raise ValueError("base URL contains a user name or password; put the key into the environment instead")
        if parts.query or parts.fragment:
            raise ValueError("base URL contains a query or fragment; give query parameters with --query name=value")
        for name, value in self.headers:
            if not _FIELD_NAME.fullmatch(name) or re.search(r"[\r\n\0]", value):
                raise ValueError(f"header {name!r} cannot be sent; expected 'Name: value' on one line")
        if re.search(r"[^\x21-\x7e]", self.key):
            raise ValueError("the key contains white space or characters beyond ASCII; check how it was set")

    @property
    def loopback(self) -> bool:
        """Whether the host is this machine, which is never reached through a proxy."""
        host = urlsplit(self.base_url).hostname or ""
        return host == "localhost" or host.startswith("127.") or host in {"::1", "0:0:0:0:0:0:0:1"}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values to mask in everything that is recorded or printed."""
        added = [value for name, value in (*self.headers, *self.query) if self._is_credential(name, value)]
        # "Bearer abc" in a header is the secret "abc", which may be echoed without its scheme
        return tuple(
            dict.fromkeys(
                word for value in (self.key, self.key[:-1], self.canary, *added) for word in value.split() if word
            )
        )

    @property
    def common_secrets(self) -> tuple[str, ...]:
        """What holds a secret that is a common word: the key, or the name of a header or query parameter.

        Replies are not masked for it, since that would change what they say.
        """
        credentials = {name: value for name, value in (*self.headers, *self.query) if self._is_credential(name, value)}
        secrets = {**({"the key": self.key} if self.key else {}), **credentials}
        return tuple(name for name, value in secrets.items() if is_common(value.rpartition(" ")[2]) and len(value) > 5)

    @property
    def _wrong(self) -> str:
        return self.canary or WRONG_KEY

    def url(self, case: RequestCase) -> str:
        """The address of a case: base URL, the operation's path or the case's own, and the query."""
        query = f"?{urlencode(self.query, quote_via=quote)}" if self.query else ""
        return self.base_url.rstrip("/") + (case.path or self.path) + query

    def head(self, case: RequestCase) -> list[tuple[str, str]]:
        """All header fields of a case, with credentials but without Host and those that frame the body."""
        names_of_case = {name.lower() for name, _ in case.headers}
        return [
            *([] if "accept" in names_of_case else [("accept", "*/*")]),
            ("accept-encoding", "gzip, deflate"),
            ("user-agent", f"completions-conformance/{__version__}"),
            *self._credentials(case.credential),
            *((name, value) for name, value in self.headers if not self._is_credential(name, value)),
            *((name, value) for name, value in case.headers if name.lower() != "transfer-encoding"),
        ]

    def _is_credential(self, name: str, value: str) -> bool:
        return is_secret(name, value) or name.lower() in {credential.lower() for credential in self.credentials}

    def _credentials(self, credential: Credential) -> Iterator[tuple[str, str]]:
        """The key and all other secret header fields: a request without a key must not have one in another field."""
        if credential is Credential.NONE:
            return
        for value in credential.authorization(self.key, self._wrong):
            yield "authorization", value
        for name, value_sent in self.headers:
            if self._is_credential(name, value_sent):
                yield name, self._wrong if credential.refused else value_sent
