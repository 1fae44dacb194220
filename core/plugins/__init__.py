"""The plugins, by the names the configuration uses."""

from core.plugins.capacity import Capacity
from core.plugins.conformance import Conformance
from core.plugins.drf import Drf
from core.plugins.gang import Gang
from core.plugins.network_topology_aware import NetworkTopologyAware
from core.plugins.nodeorder import NodeOrder
from core.plugins.overcommit import Overcommit
from core.plugins.plugin import PluginBuilder
from core.plugins.predicates import Predicates
from core.plugins.priority import Priority
from core.plugins.proportion import Proportion
from core.plugins.resourcequota import ResourceQuotas
from core.plugins.sla import Sla
from core.plugins.tdm import Tdm

PLUGINS: dict[str, PluginBuilder] = {
    "capacity": Capacity,
    "conformance": Conformance,
    "drf": Drf,
    "gang": Gang,
    "network-topology-aware": NetworkTopologyAware,
    "nodeorder": NodeOrder,
    "overcommit": Overcommit,
    "predicates": Predicates,
    "priority": Priority,
    "proportion": Proportion,
    "resourcequota": ResourceQuotas,
    "sla": Sla,
    "tdm": Tdm,
}
