"""Tables: what `kubectl get` prints, made by the server."""

from actors.gateway.tables.column import Include, Printer, TableColumn
from actors.gateway.tables.printers import PRINTERS, printer_of
from actors.gateway.tables.table import definitions, partial, row

__all__ = ["PRINTERS", "Include", "Printer", "TableColumn", "definitions", "partial", "printer_of", "row"]
