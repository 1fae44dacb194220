# SPDX-License-Identifier: Apache-2.0
"""Configurations of webhooks, as Kubernetes defaults and validates them.

Source: validation of Kubernetes' admissionregistration.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from typing import Any, Final

from pumice.cluster.api.admission.match_rules import (
    condition_problems,
    default_matching,
    mappings,
    policy_problems,
    rule_problems,
    texts,
)
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.names import old_label_problem, subdomain_problem
from pumice.cluster.api.refusals import Cause, duplicate, invalid_value, required, unsupported
from pumice.cluster.api.schema.table import enum_of
from pumice.core.kube.cel.network import NetworkError, any_url
from pumice.core.kube.cel.scopes import of_request
from pumice.core.objects.metadata import Object, is_mapping, section

_FAILURE_POLICIES: Final = enum_of("admissionregistration.v1.MutatingWebhook", "failurePolicy")
_REINVOCATION: Final = enum_of("admissionregistration.v1.MutatingWebhook", "reinvocationPolicy")
# the schema has Some and Unknown too, which v1 refuses
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_VERSIONS: Final = ("v1", "v1beta1")
_FORM: Final = "; desired format: https://host[/path]"
_LEAST_SEGMENTS: Final = 3
_MOST_SECONDS: Final = 30
_PORT: Final = 443


def default(configuration: Object, _lookup: Lookup) -> None:
    """Write what Kubernetes does into one."""
    mutating = configuration.get("kind") == "MutatingWebhookConfiguration"
    for hook in mappings(configuration, "webhooks"):
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("timeoutSeconds", 10)
        if mutating:
            hook.setdefault("reinvocationPolicy", "Never")
        default_matching(hook, ("rules",))
        service = section(section(hook, "clientConfig"), "service")
        if service:
            service.setdefault("port", _PORT)


def validate(configuration: Object, _lookup: Lookup) -> list[Cause]:
    """Return everything that is wrong with a new one."""
    found: list[Cause] = []
    seen: set[str] = set()
    for place, hook in enumerate(mappings(configuration, "webhooks")):
        path, name = f"webhooks[{place}]", str(hook.get("name") or "")
        found += _name_problems(name, f"{path}.name")
        if name in seen and name:
            found.append(duplicate(f"{path}.name", name))
        seen.add(name)
        found += _hook_problems(hook, path)
    return found


def validate_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed configuration; the rules are those of a new one."""
    default(new, lookup)
    return validate(new, lookup)


def _name_problems(name: str, path: str) -> list[Cause]:
    if not name:
        return [required(path)]
    if problem := subdomain_problem(name):
        return [invalid_value(path, name, problem)]
    if name.count(".") + 1 < _LEAST_SEGMENTS:
        return [invalid_value(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _hook_problems(hook: Object, path: str) -> list[Cause]:
    found: list[Cause] = []
    for place, rule in enumerate(mappings(hook, "rules")):
        found += rule_problems(rule, f"{path}.rules[{place}]")
    for part, known in (
        ("failurePolicy", _FAILURE_POLICIES),
        ("reinvocationPolicy", _REINVOCATION),
        ("sideEffects", _SIDE_EFFECTS),
    ):
        if hook.get(part) not in (None, *known):
            found.append(unsupported(f"{path}.{part}", hook[part], known))
    if hook.get("sideEffects") is None:
        found.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    timeout: Any = hook.get("timeoutSeconds")
    if not isinstance(timeout, int) or not 1 <= timeout <= _MOST_SECONDS:
        why = f"the timeout value must be between 1 and {_MOST_SECONDS} seconds"
        found.append(invalid_value(f"{path}.timeoutSeconds", timeout, why))
    found += policy_problems(hook, path)
    found += client_problems(section(hook, "clientConfig"), f"{path}.clientConfig")
    found += condition_problems(mappings(hook, "matchConditions"), f"{path}.matchConditions", of_request())
    return found + _version_problems(texts(hook, "admissionReviewVersions"), f"{path}.admissionReviewVersions")


def _version_problems(versions: list[str], path: str) -> list[Cause]:
    if not versions:
        return [required(path, f"must specify one of {', '.join(_VERSIONS)}")]
    found: list[Cause] = []
    for place, version in enumerate(versions):
        if version in versions[:place]:
            found.append(invalid_value(f"{path}[{place}]", version, "duplicate version"))
        elif problem := old_label_problem(version):
            found.append(invalid_value(f"{path}[{place}]", version, problem))
    if not set(versions) & set(_VERSIONS):
        found.append(invalid_value(path, versions, f"must include at least one of {', '.join(_VERSIONS)}"))
    return found


def client_problems(client: Object, path: str) -> list[Cause]:
    """Return the errors of a webhook's address and certificates."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    found = _bundle_problems(client.get("caBundle"), f"{path}.caBundle")
    if url is not None:
        return found + _url_problems(str(url), f"{path}.url")
    return found + _service_problems(service if is_mapping(service) else {}, f"{path}.service")


def _url_problems(text: str, path: str) -> list[Cause]:
    try:
        url = any_url(text)
    except NetworkError as error:
        return [required(path, f"url must be a valid URL: parse {text[:80]!r}: {error}{_FORM}")]
    found: list[Cause] = []
    if url.scheme != "https":
        found.append(invalid_value(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not url.host:
        found.append(invalid_value(path, url.host, f"host must be specified{_FORM}"))
    if url.user:
        found.append(invalid_value(path, text, "user information is not permitted in the URL"))
    if url.fragment:
        found.append(invalid_value(path, url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        found.append(invalid_value(path, url.query, "query parameters are not permitted in the URL"))
    return found


def _service_problems(service: Object, path: str) -> list[Cause]:
    found = [required(f"{path}.{part}") for part in ("name", "namespace") if not service.get(part)]
    port: Any = service.get("port", _PORT)
    if not isinstance(port, int) or not 1 <= port <= 65535:
        found.append(invalid_value(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive"))
    where, steps = str(service.get("path") or ""), f"{path}.path"
    if where in ("", "/"):
        return found
    if where == "//":
        return [*found, invalid_value(steps, where, "segment[0] may not be empty")]
    if not where.startswith("/"):
        found.append(invalid_value(steps, where, "must start with a '/'"))
    for place, step in enumerate(where[1:].removesuffix("/").split("/")):
        problem = subdomain_problem(step)
        if not step:
            found.append(invalid_value(steps, where, f"segment[{place}] may not be empty"))
        elif problem:
            found.append(invalid_value(steps, where, f"segment[{place}]: {problem}"))
    return found


def _bundle_problems(bundle: object, path: str) -> list[Cause]:
    """Return the problems of a bundle of certificates. An empty one is filled in later, by the program that makes the
    certificates (cert-manager, a job of the install).
    """
    if not bundle:
        return []
    try:
        text = base64.b64decode(str(bundle), validate=False).decode()
    except (binascii.Error, ValueError):
        return [invalid_value(path, _shortly(bundle), "must be base64 of certificates in PEM form")]
    if text.strip():
        try:
            ssl.create_default_context(cadata=text)
        except (ssl.SSLError, ValueError):
            why = "unable to load root certificates: unable to parse bytes as PEM block"
            return [invalid_value(path, _shortly(bundle), why)]
    return []


def _shortly(bundle: object) -> str:
    return str(bundle)[:40]
