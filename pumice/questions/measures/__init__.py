# SPDX-License-Identifier: Apache-2.0
"""Measures of a run: the lives of pods and jobs, resources over time, and figures about all of it, from a journal."""
