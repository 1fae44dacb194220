# SPDX-License-Identifier: Apache-2.0
"""The recorded inputs under another configuration: simulated again on virtual time, and compared."""
