"""JobFlows and JobTemplates of Volcano."""
