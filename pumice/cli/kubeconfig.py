# SPDX-License-Identifier: Apache-2.0
"""`pumice kubeconfig`: a kubeconfig for a running `pumice run --http`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from pumice.cli.exits import Exit, UsageError
from pumice.cli.inputs import warn_of_token
from pumice.cli.terminal import Terminal, speaking
from pumice.cluster.rbac.rules import account_of
from pumice.config.errors import UnknownNameError
from pumice.config.input_file import demand_output
from pumice.config.settings import read_process_settings
from pumice.core.objects.metadata import Object
from pumice.questions.explain.server import Server, account_token
from pumice.results import Laid
from pumice.runtime.serving import export_line, kubeconfig_of, text_of, token_of, write
from pumice.runtime.tokens import read_users


class KubeconfigResult(Laid, tag="kubeconfig/1"):
    """A kubeconfig (Kubernetes' Config, v1)."""

    kubeconfig: Object


@speaking
def kubeconfig(
    http: Annotated[
        str | None, typer.Option("--http", metavar="HOST:PORT", help="As given to run. [PUMICE_HTTP]")
    ] = None,
    server: Annotated[
        str | None, typer.Option("--server", metavar="URL", help="URL of the server, where it differs from --http.")
    ] = None,
    token: Annotated[
        str | None, typer.Option("--token", metavar="TOKEN", help="As given to run. [PUMICE_TOKEN]")
    ] = None,
    token_file: Annotated[
        str | None, typer.Option("--token-file", metavar="FILE", help="As given to run. [PUMICE_TOKEN_FILE]")
    ] = None,
    tls_cert: Annotated[
        str | None, typer.Option("--tls-cert", metavar="PEM", help="As given to run. [PUMICE_TLS_CERT]")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="NAME",
            help="User of --token-auth-file, or system:serviceaccount:NAMESPACE:NAME, whose token the server makes.",
        ),
    ] = None,
    token_auth_file: Annotated[
        str | None,
        typer.Option("--token-auth-file", metavar="FILE", help="As given to run. [PUMICE_TOKEN_AUTH_FILE]"),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--write", "-w", metavar="FILE", help="Write the kubeconfig to this file.")
    ] = None,
    *,
    terminal: Terminal,
) -> int:
    """Print or write a kubeconfig: without --write to stdout, as YAML, or as JSON on request."""
    flags: dict[str, object] = {
        "http": http, "token": token, "token_file": token_file, "tls_cert": tls_cert,
        "token_auth_file": token_auth_file,
    }  # fmt: skip
    settings = read_process_settings(flags, os.environ)
    warn_of_token(token, terminal)
    certificate = Path(settings.tls_cert) if settings.tls_cert else None
    url = server or _url(settings.http, secure=certificate is not None)
    own = token_of(settings)
    if user is None:
        found = kubeconfig_of(url, own, certificate)
    else:
        asked = Server(url, own, certificate)
        found = kubeconfig_of(url, _token_of_user(user, settings.token_auth_file, asked), certificate, user)
    if file is not None:
        demand_output(file)
        write(found, file)
        terminal.say(export_line(file))
    else:
        terminal.emit(
            KubeconfigResult(found), lambda console: console.print(text_of(found), end="", markup=False, soft_wrap=True)
        )
    return Exit.DONE


def _token_of_user(user: str, file: str | None, server: Server) -> str:
    """Return the token of a user: of the token file, or of a ServiceAccount, from the server. Raises UsageError."""
    account = account_of(user)
    if account is not None:
        return account_token(server, *account)
    if file is None:
        raise UsageError("where is its token? give --token-auth-file FILE as to run", path="--user")
    tokens = {each.name: token for token, each in read_users(Path(file)).items()}
    if user not in tokens:
        raise UnknownNameError("user", user, tokens, path="--user")
    return tokens[user]


def _url(address: str | None, *, secure: bool) -> str:
    if address is None:
        raise UsageError("where does it run? give --http HOST:PORT, or --server URL", path="--http")
    host, _, port = address.rpartition(":")
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)
    return f"{'https' if secure else 'http'}://{host}:{port}"
