"""The main job: the whole system in one process, from manifests to the end that was asked for."""
