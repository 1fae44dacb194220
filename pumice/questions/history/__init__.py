# SPDX-License-Identifier: Apache-2.0
"""A journal for people: entries as sentences, stories of jobs and pods, single cycles."""
