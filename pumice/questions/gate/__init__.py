# SPDX-License-Identifier: Apache-2.0
"""The gate: which jobs does a change of policy help or harm? Two policies, the same workloads, and expectations."""
