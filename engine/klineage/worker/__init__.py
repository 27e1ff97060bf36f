"""What runs beside the hardware: loads, runs, checks and times kernels in child processes."""
