"""What a session asked and was answered, and where every action ended for every job: as data, for who asks."""
