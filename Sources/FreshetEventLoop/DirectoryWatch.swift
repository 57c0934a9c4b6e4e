/// Tells that names in a directory have gone, or have come by a rename: inotify(7) on a loop.
///
/// It says that something happened, not what: look at the names that you care for. Events that come together are told
/// once. When the directory itself goes away it is told once more, and then nothing.
public final class DirectoryWatch: Sendable {
    /// The most buffers of events that are read in one turn of the loop.
    static let readsPerTurn = 4

    private let watch: DescriptorWatch

    /// - Parameters:
    ///   - loop: waits for the changes.
    ///   - path: the directory.
    ///   - handler: called on the loop's thread.
    public init(
        _ loop: EventLoop, path: String, _ handler: @escaping @Sendable () -> Void
    ) throws(SystemCallError) {
        let inotify = try InotifyDescriptor()
        try inotify.add(path, for: [.removed, .movedAway, .movedHere, .selfRemoved, .selfMoved, .onlyDirectory])
        watch = try loop.watch(inotify.rawValue, for: .read) { _ in
            inotify.read(atMost: Self.readsPerTurn) { _ in }
            handler()
        }
    }

    deinit { watch.cancel() }
}
