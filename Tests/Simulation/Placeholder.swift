// Placeholder until the ring's first test lands.
