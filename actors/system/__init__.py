"""The wiring: who there is, who sends to whom, how a system is set up, started and recovered."""
