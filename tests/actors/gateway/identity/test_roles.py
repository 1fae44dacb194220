# SPDX-License-Identifier: Apache-2.0
"""Roles over HTTP: who may do what, in Kubernetes' words; a user of one namespace learns nothing of others."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from anyio import fail_after, sleep

from pumice.actors.gateway.advice import KINDS
from pumice.actors.gateway.identity.account_tokens import AUDIENCE
from pumice.cluster.rbac.rules import User
from pumice.core.objects.metadata import Object
from tests.actors.gateway.advisers import says_who_sees
from tests.actors.gateway.rig import PODS, Web, pod_of, serving, take

anyio = pytest.mark.anyio
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS: Final = "/apis/authorization.k8s.io/v1"
ADMIN: Final[dict[str, Any]] = {"authorization": "Bearer secret"}
ALICE: Final[dict[str, Any]] = {"authorization": "Bearer a"}
BOB: Final[dict[str, Any]] = {"authorization": "Bearer b"}


@asynccontextmanager
async def roles(**gateway: Any) -> AsyncGenerator[Web]:
    """A server with an administrator, and alice and bob who have no rights yet."""
    users = {"a": User("alice", ("dev",), "1"), "b": User("bob")}
    async with serving(authorization="rbac", token="secret", users=users, **gateway) as web:
        yield web


async def bind(web: Web, role: str, user: str, namespace: str = "", kind: str = "ClusterRole") -> None:
    sort = "RoleBinding" if namespace else "ClusterRoleBinding"
    body = {
        "metadata": {"name": f"{user}-{role}"},
        "roleRef": {"kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": user}],
    }
    place = f"/namespaces/{namespace}" if namespace else ""
    await web.send("POST", f"{RBAC}{place}/{sort.lower()}s", body, 201, **ADMIN)


async def make_role(web: Web, name: str, namespace: str = "", **rule: Any) -> Object:
    place = f"/namespaces/{namespace}/roles" if namespace else "/clusterroles"
    body = {"metadata": {"name": name}, "rules": [rule] if rule else []}
    return await web.send("POST", f"{RBAC}{place}", body, 201, **ADMIN)


async def space(web: Web, name: str) -> None:
    await web.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}}, 201, **ADMIN)


async def refusal(web: Web, method: str, path: str, who: dict[str, str], body: Any = None) -> str:
    return str((await web.send(method, path, body, 403, **who))["message"])


async def until_aggregated(web: Web, role: str) -> None:
    with fail_after(10):
        while not (await web.get(f"{RBAC}/clusterroles/{role}", **ADMIN)).get("rules"):  # noqa: ASYNC110
            await sleep(0.01)


@anyio
async def test_a_user_who_comes_later_is_known() -> None:
    users = {"a": User("alice")}
    async with serving(authorization="rbac", token="secret", users=users) as web:
        carol = {"authorization": "Bearer c"}
        await web.send("GET", PODS, None, 401, **carol)
        users["c"] = User("carol")
        assert 'User "carol" cannot' in await refusal(web, "GET", PODS, carol)


@anyio
async def test_refusals_have_kubernetes_words() -> None:
    async with roles() as web:
        of_pods = 'User "alice" cannot {} resource "pods" in API group "" in the namespace "default"'
        assert await refusal(web, "GET", PODS, ALICE) == f"pods is forbidden: {of_pods.format('list')}"
        assert await refusal(web, "GET", f"{PODS}?watch=1", ALICE) == f"pods is forbidden: {of_pods.format('watch')}"
        deleted = of_pods.format("deletecollection")
        assert await refusal(web, "DELETE", PODS, ALICE) == f"pods is forbidden: {deleted}"
        assert await refusal(web, "GET", f"{PODS}/p", ALICE) == f'pods "p" is forbidden: {of_pods.format("get")}'
        log = f'pods "p" is forbidden: {of_pods.format("get").replace("pods", "pods/log")}'
        assert await refusal(web, "GET", f"{PODS}/p/log", ALICE) == log
        cluster = 'nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at the cluster scope'
        assert await refusal(web, "GET", "/api/v1/nodes", ALICE) == cluster
        assert await refusal(web, "GET", "/metrics", ALICE) == 'forbidden: User "alice" cannot get path "/metrics"'
        queues = 'queues.scheduling.volcano.sh is forbidden: User "alice" cannot list resource "queues" in API group '
        told = await refusal(web, "GET", "/apis/scheduling.volcano.sh/v1beta1/queues", ALICE)
        assert told == f'{queues}"scheduling.volcano.sh" at the cluster scope'
        anonymous = 'forbidden: User "system:anonymous" cannot get path "/api"'
        assert await refusal(web, "GET", "/api", {}) == anonymous
        await web.send("GET", "/api", code=401, authorization="Bearer wrong")
        assert (await web.http.get("/livez")).text == "ok"
        assert (await web.get("/version"))["major"]
        assert (await web.get("/api", **ALICE))["versions"] == ["v1"]
        # the answer does not distinguish what does not exist from what is forbidden
        assert "cannot list resource" in await refusal(web, "GET", "/apis/no.such/v1/things", ALICE)


@anyio
async def test_names_subresources_and_paths_are_told_apart() -> None:
    async with roles() as web:
        await make_role(web, "one-pod", "default", verbs=["*"], apiGroups=[""], resources=["pods"], resourceNames=["p"])
        await make_role(web, "logs", "default", verbs=["get"], apiGroups=[""], resources=["*/log"])
        await make_role(web, "meters", verbs=["get"], nonResourceURLs=["/met*"])
        for role in ("one-pod", "logs"):
            await bind(web, role, "alice", "default", "Role")
        await bind(web, "meters", "bob")
        await web.send("POST", PODS, pod_of("p"), 201, **ADMIN)
        assert (await web.get(f"{PODS}/p", **ALICE))["metadata"]["name"] == "p"
        await refusal(web, "GET", f"{PODS}/q", ALICE)
        await refusal(web, "GET", PODS, ALICE)
        assert len((await web.get(f"{PODS}?fieldSelector=metadata.name=p", **ALICE))["items"]) == 1
        await refusal(web, "GET", f"{PODS}?fieldSelector=metadata.name!=q", ALICE)
        await refusal(web, "POST", PODS, ALICE, pod_of("p2"))  # a name does not count for what has none yet
        assert (await web.http.get(f"{PODS}/q/log", headers=ALICE)).status_code == 404
        await refusal(web, "PUT", f"{PODS}/p/status", ALICE, {})
        assert (await web.http.get("/metrics", headers=BOB)).status_code == 200
        await refusal(web, "GET", "/metrics", ALICE)


@anyio
async def test_a_binding_counts_at_once_and_no_longer_once_deleted() -> None:
    async with roles() as web:
        await until_aggregated(web, "view")
        for _ in range(5):
            await bind(web, "view", "alice", "default")
            assert (await web.get(PODS, **ALICE))["items"] == []
            await web.send("DELETE", f"{RBAC}/namespaces/default/rolebindings/alice-view", **ADMIN)
            await refusal(web, "GET", PODS, ALICE)


@anyio
async def test_nobody_hands_out_what_it_has_not() -> None:
    async with roles() as web:
        for default in ("view", "edit", "admin"):
            await until_aggregated(web, default)
        await bind(web, "admin", "alice", "default")
        path = f"{RBAC}/namespaces/default/roles"
        role: Object = {"metadata": {"name": "r"}}
        held: Object = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "secrets"]}
        made = await web.send("POST", path, {**role, "rules": [held]}, 201, **ALICE)
        more = {**held, "resources": ["nodes"]}
        told = await refusal(web, "POST", path, ALICE, {"metadata": {"name": "s"}, "rules": [held, more]})
        assert told == (
            'roles.rbac.authorization.k8s.io "s" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) is '
            'attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["nodes"], '
            'Verbs:["get" "list"]}'
        )
        await refusal(web, "PUT", f"{path}/r", ALICE, {**made, "rules": [more]})
        for form, patch in (
            ("merge-patch", {"rules": [more]}),
            ("json-patch", [{"op": "replace", "path": "/rules/0/resources/0", "value": "nodes"}]),
            ("apply-patch", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", **role, "rules": [more]}),
        ):
            kind = {"content-type": f"application/{form}+{'yaml' if form == 'apply-patch' else 'json'}"}
            query = "?fieldManager=m&force=true" if form == "apply-patch" else ""
            assert "attempting to grant" in await refusal(web, "PATCH", f"{path}/r{query}", ALICE | kind, patch)
        labelled = {"metadata": {"labels": {"a": "b"}}}
        merge: Object = {"content-type": "application/merge-patch+json"}
        assert (await web.send("PATCH", f"{path}/r", labelled, **ALICE, **merge))["metadata"]["labels"] == {"a": "b"}
        bindings = f"{RBAC}/namespaces/default/rolebindings"
        body = {"metadata": {"name": "up"}, "subjects": [{"kind": "User", "name": "alice"}]}
        top = {**body, "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}}
        assert '{NonResourceURLs:["*"], Verbs:["*"]}' in await refusal(web, "POST", bindings, ALICE, top)
        gone = {**body, "roleRef": {"kind": "Role", "name": "gone"}}
        assert (await web.send("POST", bindings, gone, 404, **ALICE))["message"].endswith('"gone" not found')
        # the two verbs that let a user do it all the same
        rule = {
            "verbs": ["bind"],
            "apiGroups": ["*"],
            "resources": ["clusterroles"],
            "resourceNames": ["cluster-admin"],
        }
        await make_role(web, "binder", "default", **rule)
        await make_role(web, "raiser", "default", verbs=["escalate"], apiGroups=["*"], resources=["roles"])
        await bind(web, "binder", "alice", "default", "Role")
        await bind(web, "raiser", "alice", "default", "Role")
        await web.send("PUT", f"{path}/r", {**made, "metadata": role["metadata"], "rules": [more]}, **ALICE)
        await web.send("POST", bindings, top, 201, **ALICE)
        assert (await web.get(PODS, **ALICE))["items"] == []


@anyio
async def test_an_aggregated_role_needs_every_right_and_collects_by_labels() -> None:
    async with roles() as web:
        await make_role(web, "writer", verbs=["create"], apiGroups=["*"], resources=["clusterroles"])
        await bind(web, "writer", "alice")
        rule = {"clusterRoleSelectors": [{"matchLabels": {"part-of": "all"}}]}
        body = {"metadata": {"name": "all"}, "aggregationRule": rule}
        told = await refusal(web, "POST", f"{RBAC}/clusterroles", ALICE, body)
        assert '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}' in told
        await web.send("POST", f"{RBAC}/clusterroles", body, 201, **ADMIN)
        one: Object = {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]}
        part = {"metadata": {"name": "part", "labels": {"part-of": "all"}}, "rules": [one, one]}
        await web.send("POST", f"{RBAC}/clusterroles", part, 201, **ADMIN)
        await until_aggregated(web, "all")
        assert (await web.get(f"{RBAC}/clusterroles/all", **ADMIN))["rules"] == [one]


@anyio
async def test_impersonation_needs_a_right_for_each_part() -> None:
    async with roles() as web:
        as_bob = {**ALICE, "impersonate-user": "bob"}
        told = await refusal(web, "GET", PODS, as_bob)
        who = 'User "alice" cannot impersonate resource "users" in API group "" at the cluster scope'
        assert told == f'users "bob" is forbidden: {who}'
        await make_role(
            web, "as-bob", verbs=["impersonate"], apiGroups=[""], resources=["users"], resourceNames=["bob"]
        )
        await bind(web, "as-bob", "alice")
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        seen = (await web.send("POST", path, {}, 201, **as_bob))["status"]["userInfo"]
        assert seen == {"username": "bob", "groups": ["system:authenticated"]}
        assert 'resource "groups"' in await refusal(web, "GET", PODS, as_bob | {"impersonate-group": "system:masters"})
        extra = as_bob | {"impersonate-extra-team%2Fname": "x"}
        assert 'resource "userextras/team/name" in API group "authentication.k8s.io"' in await refusal(
            web, "GET", PODS, extra
        )
        account = ADMIN | {"impersonate-user": "system:serviceaccount:default:robot"}
        seen = (await web.send("POST", path, {}, 201, **account))["status"]["userInfo"]
        assert seen["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
        await web.send("GET", PODS, code=400, **ADMIN, **{"impersonate-group": "dev"})


@anyio
async def test_reviews_tell_what_requests_meet() -> None:
    async with roles() as web:
        rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["p"]}
        await make_role(web, "one-pod", "default", **rule)
        await bind(web, "one-pod", "alice", "default", "Role")
        about = {"verb": "get", "resource": "pods", "namespace": "default", "name": "p"}
        path = f"{REVIEWS}/selfsubjectaccessreviews"
        status = (await web.send("POST", path, {"spec": {"resourceAttributes": about}}, 201, **ALICE))["status"]
        why = 'RBAC: allowed by RoleBinding "alice-one-pod/default" of Role "one-pod" to User "alice"'
        assert status == {"allowed": True, "reason": why}
        spec = {"resourceAttributes": {**about, "name": "q"}}
        assert (await web.send("POST", path, {"spec": spec}, 201, **ALICE))["status"] == {"allowed": False}
        await web.send("POST", path, {"spec": {}}, 422, **ALICE)
        rules = f"{REVIEWS}/selfsubjectrulesreviews"
        found = await web.send("POST", rules, {"spec": {"namespace": "default"}}, 201, **ALICE)
        assert rule in found["status"]["resourceRules"]
        assert found["status"]["incomplete"] is False
        others = f"{REVIEWS}/subjectaccessreviews"
        asked = {"spec": {"user": "alice", "groups": ["dev"], "resourceAttributes": about}}
        await refusal(web, "POST", others, BOB, asked)
        assert (await web.send("POST", others, asked, 201, **ADMIN))["status"]["allowed"]
        local = f"{REVIEWS}/namespaces/default/localsubjectaccessreviews"
        assert (await web.send("POST", local, asked, 201, **ADMIN))["status"]["allowed"]
        await web.send("POST", f"{REVIEWS}/namespaces/other/localsubjectaccessreviews", asked, 400, **ADMIN)
        listed = (await web.send("GET", REVIEWS, **ADMIN))["resources"]
        assert {each["name"] for each in listed if each["namespaced"]} == {"localsubjectaccessreviews"}
        await web.send("POST", f"{REVIEWS}/localsubjectaccessreviews", asked, 404, **ADMIN)
        await web.send("POST", f"{REVIEWS}/namespaces/default/subjectaccessreviews", asked, 404, **ADMIN)


@anyio
async def test_a_token_of_an_account_ends_with_its_object_and_its_audience() -> None:
    async with roles() as web:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await web.send("POST", accounts, {"metadata": {"name": "robot"}}, 201, **ADMIN)
        pod = pod_of("p")
        pod["spec"]["serviceAccountName"] = "robot"
        await web.send("POST", PODS, pod, 201, **ADMIN)

        async def token(name: str = "robot", code: int = 201, **spec: Any) -> Object:
            return await web.send("POST", f"{accounts}/{name}/token", {"spec": spec}, code, **ADMIN)

        async def reviewed(text: str, *audiences: str) -> Object:
            body = {"spec": {"token": text, "audiences": [*audiences]}}
            path = "/apis/authentication.k8s.io/v1/tokenreviews"
            return dict((await web.send("POST", path, body, 201, **ADMIN))["status"])

        ref = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
        specs: list[Object] = [{}, {"audiences": ["vault"]}]
        bound = (await token(boundObjectRef=ref))["status"]["token"]
        plain, foreign = [(await token(**spec))["status"]["token"] for spec in specs]
        for text in (bound, plain):
            who = await web.send(
                "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, 201, authorization=f"Bearer {text}"
            )
            assert who["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
        seen = await reviewed(bound)
        assert (seen["authenticated"], seen["audiences"]) == (True, [AUDIENCE])
        assert seen["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
        await web.send("GET", PODS, code=401, authorization=f"Bearer {foreign}")
        assert (await reviewed(foreign, "vault", "x"))["audiences"] == ["vault"]
        assert "is invalid for the target audiences" in (await reviewed(foreign))["error"]
        head, claims, mark = plain.split(".")
        for broken in (f"{head}.{claims}.{mark[:-2]}xx", f"{head}.{claims[:-4]}.{mark}", f"{head}.{claims}.", "a.b.c"):
            await web.send("GET", PODS, code=401, authorization=f"Bearer {broken}")
            assert (await reviewed(broken))["authenticated"] is False
        assert (await reviewed("a"))["user"]["username"] == "alice"
        await token("default", 400, boundObjectRef=ref)  # the pod is another account's
        await token(code=404, boundObjectRef={**ref, "name": "none"})
        await web.send("DELETE", f"{PODS}/p?gracePeriodSeconds=0", **ADMIN)
        with fail_after(10):
            while (await reviewed(bound))["authenticated"]:  # noqa: ASYNC110 - the hub hears of it a little later
                await sleep(0.01)
        assert (await reviewed(plain))["authenticated"] is True
        await web.send("DELETE", f"{accounts}/robot", **ADMIN)
        with fail_after(10):
            while (await reviewed(plain))["authenticated"]:  # noqa: ASYNC110
                await sleep(0.01)


@anyio
async def test_a_user_of_one_namespace_learns_nothing_of_another() -> None:
    async with roles() as web:
        await until_aggregated(web, "view")
        await space(web, "hidden")
        await bind(web, "view", "alice", "default")
        await web.send("POST", PODS, pod_of("mine"), 201, **ADMIN)
        theirs, hidden = "/api/v1/namespaces/hidden/pods", dict[str, Object]()
        for name in ("secret-pod", "second"):
            hidden[name] = pod_of(name, app="secret")
            hidden[name]["metadata"]["namespace"] = "hidden"
        await web.send("POST", theirs, hidden["secret-pod"], 201, **ADMIN)
        table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        for path in (
            theirs,
            f"{theirs}?labelSelector=app=secret",
            f"{theirs}?watch=1",
            "/api/v1/watch/namespaces/hidden/pods",
            "/api/v1/pods",
            "/api/v1/pods?fieldSelector=metadata.namespace=default",
            "/api/v1/pods?watch=1",
            "/api/v1/namespaces",
            "/api/v1/events",
            "/apis/metrics.k8s.io/v1beta1/pods",
            "/apis/metrics.k8s.io/v1beta1/namespaces/hidden/pods",
            "/metrics",
        ):
            for form in ({}, table):
                assert "secret" not in await refusal(web, "GET", path, ALICE | form)
        # an object that exists is not told from one that does not
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            for rest in ("", "/log", "/status"):
                there, none = [
                    await refusal(web, method, f"{theirs}/{name}{rest}", ALICE, {}) for name in ("secret-pod", "none")
                ]
                assert there == none.replace("none", "secret-pod")
        whole = json.dumps(await web.get(PODS, **ALICE, **table))
        assert "mine" in whole
        assert "secret" not in whole
        async with web.watching(
            f"{PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", **ALICE
        ) as events:
            (first,) = await take(events, 1)
            assert first["object"]["metadata"]["name"] == "mine"
            await web.send("POST", theirs, hidden["second"], 201, **ADMIN)
            await web.send("POST", PODS, pod_of("third"), 201, **ADMIN)
            (next_one,) = await take(events, 1)
            assert next_one["object"]["metadata"]["name"] == "third"


@anyio
async def test_questions_and_the_page_follow_the_same_rights() -> None:
    async with roles(adviser=says_who_sees) as web:
        await until_aggregated(web, "view")
        base = "/apis/pumice.dev/v1"
        cluster = 'pods is forbidden: User "alice" cannot list resource "pods" in API group "" at the cluster scope'
        for row in KINDS.values():  # without any right nothing may be asked
            for path in [f"{base}/{row.plural}"] * row.of_all + [f"{base}/{row.plural}/x"] * (
                row.of_one and not row.namespaced
            ):
                method = "POST" if row.verb == "create" else "GET"
                assert await refusal(web, method, path, ALICE, {} if method == "POST" else None) == cluster, path
        place = f"{base}/namespaces/default"
        for plural in ("explanations", "stories", "estimates"):
            assert 'in the namespace "default"' in await refusal(web, "GET", f"{place}/{plural}/j", ALICE)
        for path in ("/page/live", "/page/nodes/n0", "/page/mode"):
            assert await refusal(web, "GET", path, ALICE) == cluster
        assert (await web.http.get("/page/mode")).status_code == 401
        assert (await web.http.get("/page/live")).status_code == 403
        # with a namespace of its own: about that one, and no other
        await bind(web, "view", "alice", "default")
        for path in (f"{base}/standings", f"{base}/estimates", f"{base}/waitclasses", f"{place}/stories/j"):
            assert (await web.get(path, **ALICE))["sees"] == ["default"]
        assert 'in the namespace "other"' in await refusal(web, "GET", f"{base}/namespaces/other/stories/j", ALICE)
        for path in (f"{base}/measures", f"{base}/cycles/1"):
            assert (await web.get(path, **ALICE))["sees"] == ["default"]
        assert (await web.send("POST", f"{base}/whatifs", {"changes": []}, 200, **ALICE))["sees"] == ["default"]
        for plural in ("courses", "configurations", "boards/newest"):
            assert await refusal(web, "GET", f"{base}/{plural}", ALICE) == cluster
        assert await refusal(web, "GET", "/page/live", ALICE) == cluster
        assert (await web.get("/page/mode", **ALICE))["namespaces"] == ["default"]
        # with all of them
        assert (await web.get(f"{base}/standings", **ADMIN))["sees"] is None
        await bind(web, "view", "bob")
        assert (await web.get(f"{base}/measures", **BOB))["sees"] is None
        assert 'list resource "nodes"' in await refusal(web, "GET", "/page/live", BOB)


@anyio
async def test_policies_see_the_user_and_ask_for_its_rights() -> None:
    async with roles() as web:
        await until_aggregated(web, "edit")
        for user in ("alice", "bob"):
            await bind(web, "edit", user, "default")
        await make_role(web, "boss", "default", verbs=["lead"], apiGroups=["team.example"], resources=["projects"])
        await bind(web, "boss", "bob", "default", "Role")
        admission = "/apis/admissionregistration.k8s.io/v1"
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        asked = "authorizer.group('team.example').resource('projects').namespace('default').check('lead')"
        who = "request.userInfo.username"
        own = "authorizer.requestResource.check('create').allowed()"
        other = "authorizer.serviceAccount('default', 'default').group('').resource('pods').check('list').allowed()"
        spec = {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [
                {"expression": "'system:authenticated' in request.userInfo.groups"},
                {"expression": f"{asked}.allowed()", "messageExpression": f"{who} + ' leads nothing'"},
                {"expression": f"{own} && !{other}"},
            ],
        }
        policy = {"metadata": {"name": "leads"}, "spec": spec}
        await web.send("POST", f"{admission}/validatingadmissionpolicies", policy, 201, **ADMIN)
        binding = {"metadata": {"name": "leads"}, "spec": {"policyName": "leads", "validationActions": ["Deny"]}}
        await web.send("POST", f"{admission}/validatingadmissionpolicybindings", binding, 201, **ADMIN)
        maps, body = "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}}
        with fail_after(10):
            while (await web.http.post(f"{maps}?dryRun=All", json=body, headers=ALICE)).status_code == 201:  # noqa: ASYNC110
                await sleep(0.01)
        told = str((await web.send("POST", maps, body, 422, **ALICE))["message"])
        assert told.endswith("denied request: alice leads nothing")
        await web.send("POST", maps, body, 201, **BOB)
