"""Other simulators' Python interfaces, served by doorstep."""
