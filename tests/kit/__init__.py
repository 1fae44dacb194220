"""Builders of the Kubernetes objects that tests are made of."""
