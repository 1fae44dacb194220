"""Actions that make room for whole gangs by evicting others."""
