"""Tests of Pumice; the folders mirror the packages."""
