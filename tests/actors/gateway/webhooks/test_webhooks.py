"""Webhooks are asked over HTTPS about what comes over HTTP: they change, refuse, warn, and may be missing."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import anyio
import pytest

from pumice.actors.system.settings import SystemSettings
from pumice.core.objects.metadata import Object
from tests.actors.gateway.rig import PATIENCE_S, PODS, Web, pod_of, serving
from tests.kit.prometheus import HOST, QuietServer, self_signed

Answer = Callable[[Object], Object]
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
CONTROLLED = SystemSettings(scheduler=False)

pytestmark = pytest.mark.anyio


class Operator:
    """`answer` says what becomes of a request; `asked` are those that came."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.asked = answer, list[Object]()
        self.url = self.bundle = ""


@contextmanager
def operator(folder: Path, answer: Answer) -> Generator[Operator]:
    found = Operator(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))["request"]
            found.asked.append(request)
            response = {"uid": request["uid"], **found.answer(request)}
            said = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
            content = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    certificate = self_signed(folder)
    server = QuietServer((HOST, 0), Handler)
    server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.tls.load_cert_chain(certificate)
    pem = certificate.read_text()
    begin = pem.index("-----BEGIN CERTIFICATE")
    found.bundle = base64.b64encode(pem[begin : pem.index("-----END CERTIFICATE-----") + 26].encode()).decode()
    found.url = f"https://{HOST}:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def configuration(kind: str, client: Object, operations: tuple[str, ...] = ("CREATE",), **hook: Any) -> Object:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": list(operations), "resources": ["configmaps"]}
    made = {"name": "h.test.io", "clientConfig": client, "rules": [rule], "sideEffects": "None", **hook}
    meta = {"name": "c"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": meta,
        "webhooks": [{**made, "admissionReviewVersions": ["v1"]}],
    }


async def hooked(web: Web, given: Object) -> None:
    """From now on."""
    await web.send("POST", f"{CONFIGURATIONS}/{given['kind'].lower()}s", given, 201)
    await anyio.sleep(0.3)  # the gateway sees it as every watcher does


def config_map(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}, "data": {"a": "b"}}


def allowed(request: Object) -> Object:
    return {"allowed": True}


def patching(*operations: Object) -> Object:
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(operations).encode()).decode(),
        "warnings": ["was changed"],
    }


async def test_one_changes_what_is_made_and_changed(tmp_path: Path) -> None:
    added = {"op": "add", "path": "/data/more", "value": "yes"}
    with operator(tmp_path, lambda _: patching(added)) as outside:
        async with serving() as web:
            client = {"url": outside.url, "caBundle": outside.bundle}
            await hooked(web, configuration("MutatingWebhookConfiguration", client, ("CREATE", "UPDATE")))
            assert (await web.send("POST", CONFIG_MAPS, config_map("x"), 201))["data"] == {"a": "b", "more": "yes"}
            media = {"content-type": "application/merge-patch+json"}
            changed = await web.send("PATCH", f"{CONFIG_MAPS}/x", {"data": {"a": "c", "more": None}}, 200, **media)
            assert changed["data"] == {"a": "c", "more": "yes"}
            await web.create_pods("p")  # no rule is about them
    assert [(each["operation"], each["name"], each["namespace"]) for each in outside.asked] == [
        ("CREATE", "x", "default"),
        ("UPDATE", "x", "default"),
    ]
    assert outside.asked[1]["oldObject"]["data"] == {"a": "b", "more": "yes"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/kind", "Secret"),
        ("/apiVersion", "v2"),
        ("/metadata/name", "other"),
        ("/metadata/namespace", "kube-system"),
    ],
)
async def test_a_patch_that_changes_the_identity_is_refused(tmp_path: Path, path: str, value: str) -> None:
    with operator(tmp_path, lambda _: patching({"op": "add", "path": path, "value": value})) as outside:
        async with serving() as web:
            client = {"url": outside.url, "caBundle": outside.bundle}
            await hooked(web, configuration("MutatingWebhookConfiguration", client))
            given = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("x")}
            said = await web.send("POST", CONFIG_MAPS, given, 500)
            assert f"may not change {path.strip('/').replace('/', '.')}" in said["message"]
            await web.send("GET", f"{CONFIG_MAPS}/x", None, 404)


PEM = base64.b64encode(b"no certificate").decode()
URL = {"url": "https://example.com/hook"}
SERVICE = {"name": "s", "namespace": "n"}


WRONG: list[tuple[Object, Object, str, str]] = [
    ({"url": "http://example.com"}, {}, "clientConfig.url", "'https' is the only allowed URL scheme"),
    ({"url": "https://a:b@example.com"}, {}, "clientConfig.url", "user information is not permitted"),
    ({"url": "https://example.com/?a=b"}, {}, "clientConfig.url", "query parameters are not permitted"),
    ({"url": "https://example.com/#a"}, {}, "clientConfig.url", "fragments are not permitted"),
    ({"url": "https:///a"}, {}, "clientConfig.url", "host must be specified"),
    ({"url": "https://a:b:c/"}, {}, "clientConfig.url", "must be a valid URL"),
    ({}, {}, "clientConfig", "exactly one of url or service"),
    ({**URL, "service": SERVICE}, {}, "clientConfig", "exactly one of url or service"),
    ({"service": {"name": "s"}}, {}, "clientConfig.service.namespace", "Required value"),
    ({"service": {**SERVICE, "port": 70000}}, {}, "clientConfig.service.port", "port is not valid"),
    ({"service": {**SERVICE, "path": "/a//b"}}, {}, "clientConfig.service.path", "may not be empty"),
    ({**URL, "caBundle": PEM}, {}, "clientConfig.caBundle", "unable to parse bytes as PEM block"),
    (URL, {"timeoutSeconds": 31}, "timeoutSeconds", "between 1 and 30 seconds"),
    (URL, {"timeoutSeconds": 0}, "timeoutSeconds", "between 1 and 30 seconds"),
    (URL, {"failurePolicy": "Maybe"}, "failurePolicy", "Unsupported value"),
    (URL, {"matchPolicy": "Roughly"}, "matchPolicy", "Unsupported value"),
    (URL, {"sideEffects": "Some"}, "sideEffects", "Unsupported value"),
    (URL, {"admissionReviewVersions": ["v2"]}, "admissionReviewVersions", "must include at least one of"),
    (URL, {"name": "short.name"}, "name", "at least three segments"),
    (URL, {"rules": [{"operations": ["PATCH"]}]}, "rules[0].operations[0]", "Unsupported value"),
    (URL, {"rules": [{"scope": "All"}]}, "rules[0].scope", "Unsupported value"),
    (URL, {"rules": [{"resources": ["*", "pods"]}]}, "rules[0].resources", "must not specify other resources"),
    (URL, {"rules": [{"apiGroups": []}]}, "rules[0].apiGroups", "Required value"),
    (
        URL,
        {"matchConditions": [{"name": "a", "expression": "nothing()"}]},
        "matchConditions[0].expression",
        "undecl",
    ),
    (URL, {"matchConditions": [{"name": "a", "expression": "1 + 1"}]}, "matchConditions[0].expression", "to bool"),
    (URL, {"objectSelector": {"matchLabels": {"a b": "c"}}}, "objectSelector.matchLabels", "Invalid value"),
]


@pytest.mark.parametrize(("client", "hook", "field", "complaint"), WRONG)
async def test_a_wrong_configuration_is_refused(client: Object, hook: Object, field: str, complaint: str) -> None:
    given = configuration("ValidatingWebhookConfiguration", client)
    (made,) = given["webhooks"]
    for rule in hook.get("rules", ()):
        made["rules"] = [{**made["rules"][0], **rule}]
    made |= {name: value for name, value in hook.items() if name != "rules"}
    async with serving() as web:
        said = await web.send("POST", f"{CONFIGURATIONS}/validatingwebhookconfigurations", given, 422)
        causes = said["details"]["causes"]
        assert [each["field"] for each in causes] == [f"webhooks[0].{field}"]
        assert complaint in causes[0]["message"]


async def test_a_configuration_is_filled_in_as_by_kubernetes() -> None:
    async with serving() as web:
        given = configuration("MutatingWebhookConfiguration", {"service": SERVICE})
        made = await web.send("POST", f"{CONFIGURATIONS}/mutatingwebhookconfigurations", given, 201)
        (hook,) = made["webhooks"]
        told = {name: hook[name] for name in ("failurePolicy", "matchPolicy", "timeoutSeconds", "reinvocationPolicy")}
        assert list(told.values()) == ["Fail", "Equivalent", 10, "Never"]
        assert (hook["rules"][0]["scope"], hook["clientConfig"]["service"]["port"]) == ("*", 443)
        twice = {**given, "metadata": {"name": "d"}, "webhooks": [*given["webhooks"], *given["webhooks"]]}
        said = await web.send("POST", f"{CONFIGURATIONS}/mutatingwebhookconfigurations", twice, 422)
        assert "Duplicate value" in said["message"]


async def test_one_refuses(tmp_path: Path) -> None:
    refusal = {"allowed": False, "status": {"message": "not today", "code": 403, "reason": "Forbidden"}}
    with operator(tmp_path, lambda _: refusal) as outside:
        async with serving() as web:
            await web.send("POST", CONFIG_MAPS, config_map("before"), 201)
            client = {"url": outside.url, "caBundle": outside.bundle}
            given = configuration(
                "ValidatingWebhookConfiguration",
                client,
                ("CREATE", "DELETE"),
                objectSelector={"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]},
                matchConditions=[{"name": "c", "expression": "request.name != 'let-in'"}],
            )
            await hooked(web, given)
            said = await web.send("POST", CONFIG_MAPS, config_map("x"), 403)
            assert said["message"] == 'admission webhook "h.test.io" denied the request: not today'
            await web.send("DELETE", f"{CONFIG_MAPS}/before", None, 403)
            await web.send("POST", CONFIG_MAPS, config_map("y", free="yes"), 201)
            await web.send("POST", CONFIG_MAPS, config_map("let-in"), 201)
            await web.get(f"{CONFIG_MAPS}/before")


@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
async def test_one_does_not_answer(policy: str, code: int) -> None:
    async with serving() as web:
        client = {"url": "https://127.0.0.1:1/hook"}
        await hooked(web, configuration("ValidatingWebhookConfiguration", client, failurePolicy=policy))
        said = await web.send("POST", CONFIG_MAPS, config_map("x"), code)
        if code == 500:
            assert 'failed calling webhook "h.test.io": failed to call webhook: Post ' in said["message"]


async def test_nobody_vouches_for_it(tmp_path: Path) -> None:
    with operator(tmp_path, lambda _: {"allowed": True}) as outside:
        async with serving() as web:
            await hooked(web, configuration("ValidatingWebhookConfiguration", {"url": outside.url}))
            await web.send("POST", CONFIG_MAPS, config_map("x"), 500)
    assert outside.asked == []


async def test_simulated_pods_are_not_called_and_that_is_said() -> None:
    async with serving() as web:
        spec = {"selector": {"app": "hook"}, "ports": [{"port": 443}]}
        await web.send("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": spec}, 201)
        client = {"service": {"name": "s", "namespace": "default"}}
        await hooked(web, configuration("ValidatingWebhookConfiguration", client))
        answer = await web.http.post(CONFIG_MAPS, json=config_map("x"))
        assert answer.status_code == 201
        assert "served by simulated pods" in answer.headers["warning"]
        assert (await web.http.post(PODS, json=pod_of("p"))).status_code == 201


def replica_set(replicas: int = 2) -> Object:
    labels = {"app": "w"}
    spec: Object = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "metadata": {"name": "w"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def about_pods(kind: str, outside: Operator, **more: Any) -> Object:
    made = configuration(kind, {"url": outside.url, "caBundle": outside.bundle}, **more)
    made["webhooks"][0]["rules"][0]["resources"] = ["pods"]
    return made


async def seen(web: Web, path: str, holds: Callable[[list[Object]], bool]) -> list[Object]:
    """A listing, once it is as it is to be."""
    found: list[Object] = (await web.get(path))["items"]
    with anyio.fail_after(PATIENCE_S):
        while not holds(found):
            await anyio.sleep(0.02)
            found = (await web.get(path))["items"]
    return found


async def test_one_changes_what_controllers_make(tmp_path: Path) -> None:
    added = {"op": "add", "path": "/metadata/labels/injected", "value": "yes"}
    with operator(tmp_path, lambda _: patching(added)) as outside:
        async with serving(settings=CONTROLLED) as web:
            await hooked(web, about_pods("MutatingWebhookConfiguration", outside))
            await web.send("POST", REPLICA_SETS, replica_set(), 201)
            pods = await seen(web, PODS, lambda found: len(found) == 2)
    assert [each["metadata"]["labels"] for each in pods] == [{"app": "w", "injected": "yes"}] * 2
    assert {(each["operation"], each["object"]["kind"]) for each in outside.asked} == {("CREATE", "Pod")}


async def test_one_refuses_what_controllers_make_until_it_does_not(tmp_path: Path) -> None:
    refusal = {"allowed": False, "status": {"message": "not today"}}
    with operator(tmp_path, lambda _: refusal) as outside:
        async with serving(settings=CONTROLLED) as web:
            await hooked(web, about_pods("ValidatingWebhookConfiguration", outside))
            await web.send("POST", REPLICA_SETS, replica_set(1), 201)
            events = "/api/v1/namespaces/default/events?fieldSelector=reason=FailedCreate"
            [told, *_] = await seen(web, events, bool)
            assert told["message"].endswith('admission webhook "h.test.io" denied the request: not today')
            assert (await web.get(PODS))["items"] == []
            outside.answer = allowed
            assert len(await seen(web, PODS, bool)) == 1


async def test_a_late_one_uses_up_its_time(tmp_path: Path) -> None:
    """A fault delays the question within the webhook's own timeout, after which its failurePolicy decides."""
    late = {"fault": "late-webhook", "kind": "ConfigMap", "labels": "app=web"}
    with operator(tmp_path, allowed) as outside:
        async with serving() as web:
            client = {"url": outside.url, "caBundle": outside.bundle}
            await hooked(web, configuration("ValidatingWebhookConfiguration", client, timeoutSeconds=1))
            rules = [{**late, "delay_s": 0.3, "times": 1}, {**late, "delay_s": 1.1, "webhook": "h.*"}]
            await web.send("POST", "/apis/pumice.dev/v1/faults", {"rules": rules})
            began = anyio.current_time()
            await web.send("POST", CONFIG_MAPS, config_map("a", app="web"), 201)
            assert anyio.current_time() - began >= 0.3
            said = await web.send("POST", CONFIG_MAPS, config_map("b", app="web"), 500)
            assert "context deadline exceeded" in said["message"]
            await web.send("POST", CONFIG_MAPS, config_map("c", app="db"), 201)
            struck = (await web.get("/apis/pumice.dev/v1/faults"))["struck"]
            assert struck == {"late-webhook-1": 1, "late-webhook-2": 1}
            assert [each["name"] for each in outside.asked] == ["a", "c"]
