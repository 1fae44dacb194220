"""What must hold in a storm: the monitor and its books."""
