"""Admission webhooks: those to ask about a request over HTTP, and their answers."""
