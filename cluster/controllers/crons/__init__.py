"""CronJobs: Kubernetes' own and Volcano's."""
