"""Who is calling: bearer tokens, ServiceAccount tokens (signed JWTs) and impersonation."""

import base64
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from sim_cluster.api.errors import Json, unauthorized
from sim_cluster.api.storage import Storage

AUTHENTICATED, MASTERS = "system:authenticated", "system:masters"
ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """An authenticated caller."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_master(self) -> bool:
        """Whether the caller may do everything."""
        return MASTERS in self.groups


ANONYMOUS = User(name="system:anonymous", groups=("system:unauthenticated",))


def service_account_user(namespace: str, name: str, uid: str = "") -> User:
    """The user that a ServiceAccount acts as."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(name=f"system:serviceaccount:{namespace}:{name}", groups=groups, uid=uid)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Authenticator:
    """Knows all tokens that were issued."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._static: dict[str, User] = {}
        self._verified: dict[str, Json] = {}
        self.admin_token = self.add_user("admin", (MASTERS,))

    def add_user(self, name: str, groups: tuple[str, ...] = ()) -> str:
        """A new bearer token for a user."""
        token = secrets.token_hex(16)
        self._static[token] = User(name=name, groups=(*groups, AUTHENTICATED))
        return token

    def authenticate(self, authorization: str) -> User:
        """The caller behind an `Authorization` header; anonymous without one."""
        if not authorization:
            return ANONYMOUS
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise unauthorized()
        user = self.user_of_token(token.strip())
        if user is None:
            raise unauthorized()
        return user

    def user_of_token(self, token: str) -> User | None:
        """The user of a token; None when it is not valid (any more)."""
        if token in self._static:
            return self._static[token]
        claims = self._claims(token)
        if claims is None or claims["exp"] < time.time():
            return None
        account = claims["kubernetes.io"]["serviceaccount"]
        namespace = claims["kubernetes.io"]["namespace"]
        record = self._storage.collection(("", "serviceaccounts")).get(namespace, account["name"])
        if record is None or record.uid != account["uid"]:
            return None
        return service_account_user(namespace, account["name"], account["uid"])

    def _claims(self, token: str) -> Json | None:
        if token in self._verified:
            return self._verified[token]
        parts = token.split(".")
        if len(parts) != 3:
            return None
        try:
            signature = _decode(parts[2])
            signed = f"{parts[0]}.{parts[1]}".encode()
            self._key.public_key().verify(signature, signed, ec.ECDSA(hashes.SHA256()))
            claims: Json = orjson.loads(_decode(parts[1]))
        except (InvalidSignature, ValueError):
            return None
        if len(self._verified) > 1000:
            self._verified.clear()
        self._verified[token] = claims
        return claims

    def issue(
        self, *, namespace: str, name: str, uid: str, audiences: list[str], lifetime_s: int
    ) -> str:
        """
        A signed token of a ServiceAccount.

        The signature is DER-encoded ECDSA: only this server verifies its tokens.
        """
        now = int(time.time())
        claims: dict[str, Any] = {
            "aud": audiences,
            "exp": now + lifetime_s,
            "iat": now,
            "nbf": now,
            "iss": ISSUER,
            "jti": secrets.token_hex(8),
            "sub": f"system:serviceaccount:{namespace}:{name}",
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": {"name": name, "uid": uid},
            },
        }
        header = _encode(orjson.dumps({"alg": "ES256", "typ": "JWT"}))
        signed = f"{header}.{_encode(orjson.dumps(claims))}"
        signature = self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        return f"{signed}.{_encode(signature)}"


@dataclass(frozen=True, slots=True)
class Impersonation:
    """What the `Impersonate-*` headers ask for."""

    name: str
    groups: tuple[str, ...]
    uid: str
    extra: Mapping[str, tuple[str, ...]]

    def user(self) -> User:
        """The impersonated user, with the groups that come with its name."""
        if self.name.startswith("system:serviceaccount:") and not self.groups:
            namespace, _, account = self.name.removeprefix("system:serviceaccount:").partition(":")
            return service_account_user(namespace, account)
        groups = list(self.groups)
        if self.name == ANONYMOUS.name:
            groups = groups or list(ANONYMOUS.groups)
        elif AUTHENTICATED not in groups:
            groups.append(AUTHENTICATED)
        return User(name=self.name, groups=tuple(groups), uid=self.uid, extra=self.extra)
