"""The in-process API server: store, watch and admission."""
