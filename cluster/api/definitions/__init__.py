"""CustomResourceDefinitions: what makes one acceptable, the kind it defines, and what its schema asks of objects."""
