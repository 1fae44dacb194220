"""Why a pod is pending, was placed where it is, or was evicted: one recorded cycle decided again, and watched."""
