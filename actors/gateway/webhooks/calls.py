# SPDX-License-Identifier: Apache-2.0
"""Calls of a webhook over HTTPS at its URL, or at a Service whose Endpoints were written by hand.

Behind a Service with a selector stand simulated pods: no process listens there.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import anyio
import httpx

from pumice.core.objects.metadata import Object, rows, section

MOST_BYTES: Final = 4 << 20
DEFAULT_TIMEOUT_S: Final = 10
OK: Final = 200


class CallError(Exception):
    """The webhook has not answered, in the words of Go's client."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address. `url` as messages name it; `host` and `port`: its real place, if different."""

    url: str
    host: str = ""
    port: int = 0


def timeout_s(hook: Object) -> int:
    """Return how long a webhook may take."""
    given = hook.get("timeoutSeconds")
    # The bounds of Kubernetes' validation (`pkg/apis/admissionregistration/validation`).
    return given if isinstance(given, int) and 1 <= given <= 30 else DEFAULT_TIMEOUT_S


def address_of(hook: Object, service: Object | None, endpoints: Object | None) -> Address | None:
    """Return the address of a webhook; None behind simulated pods. Raises CallError."""
    client = section(hook, "clientConfig")
    if client.get("url"):
        return Address(str(client["url"]))
    asked = section(client, "service")
    name, namespace, port = asked.get("name"), asked.get("namespace"), asked.get("port") or 443
    path = str(asked.get("path") or "").lstrip("/")
    url = f"https://{name}.{namespace}.svc:{port}/{path}"
    if service is None:
        raise CallError(f'Post "{url}?timeout={timeout_s(hook)}s": service "{name}" not found')
    spec = section(service, "spec")
    if spec.get("type") == "ExternalName":
        return Address(url, str(spec.get("externalName") or ""), int(port))
    if spec.get("selector"):
        return None
    for subset in rows(endpoints or {}, "subsets"):
        for each in rows(subset, "addresses"):
            return Address(url, str(each.get("ip") or ""), _target(spec, subset, port))
    raise CallError(f'Post "{url}?timeout={timeout_s(hook)}s": no endpoints available for service "{name}"')


def _target(spec: Object, subset: Object, port: int) -> int:
    """Return the port behind a Service's port."""
    names = [each.get("name") or "" for each in rows(spec, "ports") if each.get("port") == port]
    for each in rows(subset, "ports"):
        if (each.get("name") or "") in names:
            return int(each["port"])
    return int(port)


# Kept by bundle: a context parses all its certificates when it is made.
@lru_cache(maxsize=64)
def _trust(bundle: str) -> ssl.SSLContext:
    """Return a TLS context that trusts a bundle of certificates (base64 of PEM), "" for the system's. Raises
    CallError.
    """
    try:
        return ssl.create_default_context(cadata=base64.b64decode(bundle).decode() if bundle else None)
    except (ssl.SSLError, ValueError, binascii.Error) as error:
        raise CallError(f"the caBundle cannot be read: {error}") from error


async def call(hook: Object, address: Address, content: bytes, late_s: float = 0.0) -> bytes:
    """Return the body of a webhook's answer, which is asked so much later than its time begins. Raises CallError."""
    seconds = timeout_s(hook)
    url = httpx.URL(address.url)
    shown = f'Post "{url.copy_add_param("timeout", f"{seconds}s")}"'
    real = url.copy_with(host=address.host, port=address.port) if address.host else url
    # The certificate is for the service's name, while the connection goes to the address of an endpoint.
    extensions: Object = {"sni_hostname": url.host} if address.host else {}
    headers = {"host": url.netloc.decode(), "content-type": "application/json", "accept": "application/json"}
    trust = _trust(str(section(hook, "clientConfig").get("caBundle") or ""))
    try:
        with anyio.fail_after(seconds):
            if late_s:
                await anyio.sleep(late_s)
            # No timeout of httpx, which counts each step anew: `fail_after` bounds the whole call.
            async with httpx.AsyncClient(verify=trust, timeout=None, trust_env=False) as client:  # nosec B113
                asked = client.build_request(
                    "POST",
                    # As client-go sends it: the webhook learns how long it may take.
                    real.copy_add_param("timeout", f"{seconds}s"),
                    content=content,
                    headers=headers,
                    extensions=extensions,
                )
                answer = await client.send(asked, stream=True)
                try:
                    body = await _body(answer)
                finally:
                    await answer.aclose()
    except TimeoutError:
        raise CallError(f"{shown}: context deadline exceeded") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ssl.SSLError) as error:
        raise CallError(f"{shown}: {error}") from error
    if answer.status_code != OK:
        raise CallError(f"the server responded with the status code {answer.status_code} but did not return more")
    return body


async def _body(answer: httpx.Response) -> bytes:
    parts = bytearray()
    async for part in answer.aiter_bytes():
        parts += part
        if len(parts) > MOST_BYTES:
            raise CallError(f"the answer is longer than {MOST_BYTES} bytes")
    return bytes(parts)
