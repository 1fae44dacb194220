"""The scenarios that only a checkout has: they bring clients and clusters with them."""

from typing import Final

from pumice.proof.bench.scenarios import Scenario
from tests.benches import api, fuzz, mirror

MORE: Final = {
    "api": Scenario("the HTTP gateway: creates, gets, watches, a long list", api.DEFAULTS, api.measure),
    "mirror": Scenario("a cluster that changes all the time, followed", mirror.DEFAULTS, mirror.measure),
    "fuzz": Scenario("how long one hostile request holds the event loop", fuzz.DEFAULTS, fuzz.measure),
}
