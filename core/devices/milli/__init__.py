"""Cards in thousandths: what shares of cards leave, whoever shares them. Nothing here knows a session.

| file | what |
|---|---|
| shares.py | what a pod asks for, and which cards of a node it would get |
| typical.py | the pods that are typical of a cluster or a trace |
| fragmentation.py | how much of nodes typical pods could not use |
| scores.py | scores of nodes by how full they are, and by which pods they hold |
"""
