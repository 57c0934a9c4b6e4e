import Glibc

/// The breath between two looks of a poll that has a deadline: a millisecond.
func briefPause() { poll(nil, 0, 1) }
