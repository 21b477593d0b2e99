//! Arrival processes and rate profiles drawn from a seed, for the load tool and the simulator alike.
