# SPDX-License-Identifier: Apache-2.0
"""The HTTP gateway: Kubernetes' API over the api actor's store, for kubectl, vcctl, client-go and every other client.

Only this folder knows hypercorn. It asks the api server's mailbox like every other actor, so what comes
in over HTTP is journaled as any other request.
"""
