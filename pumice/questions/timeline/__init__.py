# SPDX-License-Identifier: Apache-2.0
"""A run as a timeline to study in Perfetto (https://ui.perfetto.dev): nodes, queues, cycles and actors as tracks."""
