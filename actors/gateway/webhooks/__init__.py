"""Admission webhooks: who is to be asked about a request over HTTP, and what they say."""
