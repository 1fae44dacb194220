"""Tables: what `kubectl get` prints, made by the server."""

from pumice.actors.gateway.tables.printers import PRINTERS, printer_of
from pumice.actors.gateway.tables.table import Include, Printer, TableColumn, definitions, partial, row

__all__ = ["PRINTERS", "Include", "Printer", "TableColumn", "definitions", "partial", "printer_of", "row"]
