/// The isolation of the daemon's collaborators. Objects on this actor call each other without `await`, so a sequence of
/// calls is atomic across all of them.
///
/// The actor has no state. In `freshetd`, its jobs run on the event loop's thread, because the loop is the global
/// executor. Only tests run several daemons in one process; these daemons take turns on the actor.
@globalActor
actor DaemonActor {
    static let shared = DaemonActor()
}
