"""The charts: values, rights and templates, and real helm where it is installed."""
