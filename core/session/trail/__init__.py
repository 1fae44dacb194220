# SPDX-License-Identifier: Apache-2.0
"""The questions of a session, the answers, and where every action ended for every job: as data, for readers."""
