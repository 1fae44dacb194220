# SPDX-License-Identifier: Apache-2.0
"""Commands of simulated containers: their words and arguments, read as a shell reads them. Pure; no program is run."""
