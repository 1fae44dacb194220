# SPDX-License-Identifier: Apache-2.0
"""The tables that `kubectl get` prints, made by the server."""

from pumice.actors.gateway.columns.printers import PRINTERS, printer_of
from pumice.actors.gateway.columns.table import Include, Printer, TableColumn, definitions, partial, row

__all__ = ["PRINTERS", "Include", "Printer", "TableColumn", "definitions", "partial", "printer_of", "row"]
