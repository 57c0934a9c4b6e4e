import FreshetEventLoop

/// The followers of each inotify watch; it has no descriptor.
struct FileWatchTable: Sendable {
    /// A followed path.
    typealias Follower = UInt64

    private struct Listener: Sendable {
        var follower: Follower
        var step: PathResolution.Step
    }

    private struct Row: Sendable {
        /// Listeners for one name, by the bytes of the name: two names may differ only in their Unicode normalization.
        /// An event takes time proportional to its listeners, however many files of the directory are followed.
        var byName: [[UInt8]: [Listener]] = [:]
        /// Listeners for all names, or for the directory itself.
        var others: [Listener] = []

        var isEmpty: Bool { byName.isEmpty && others.isEmpty }

        mutating func remove(_ follower: Follower) {
            others.removeAll { $0.follower == follower }
            for name in Array(byName.keys) {
                byName[name]?.removeAll { $0.follower == follower }
                if byName[name]?.isEmpty == true { byName[name] = nil }
            }
        }
    }

    private var rows: [Int32: Row] = [:]
    private var watches: [Follower: Set<Int32>] = [:]

    /// The number of watches, for tests.
    var count: Int { rows.count }

    /// Whether a watch has a listener.
    func has(_ watch: Int32) -> Bool { rows[watch] != nil }

    /// Replaces the watches of a follower.
    ///
    /// - Returns: Watches without a listener.
    mutating func set(_ follower: Follower, to steps: [(watch: Int32, step: PathResolution.Step)]) -> [Int32] {
        let before = watches[follower] ?? []
        for watch in before { rows[watch]?.remove(follower) }
        for (watch, step) in steps {
            let listener = Listener(follower: follower, step: step)
            if let name = step.name {
                rows[watch, default: Row()].byName[Array(name.utf8), default: []].append(listener)
            } else {
                rows[watch, default: Row()].others.append(listener)
            }
        }
        watches[follower] = steps.isEmpty ? nil : Set(steps.map(\.watch))
        let unused = before.filter { rows[$0]?.isEmpty == true }
        for watch in unused { rows[watch] = nil }
        return Array(unused)
    }

    /// Adds the meaning of an event for each follower.
    func receive(_ event: InotifyEvent, _ received: inout [Follower: FileEvents]) {
        if event.events.contains(.overflowed) {
            // Any event may be lost, including the ends of watches.
            for follower in watches.keys { received[follower, default: []].formUnion([.look, .rewatch]) }
            return
        }
        guard let row = rows[event.watch] else { return }
        func notify(_ listeners: [Listener]) {
            for listener in listeners {
                let meaning = listener.step.meaning(of: event)
                if !meaning.isEmpty { received[listener.follower, default: []].formUnion(meaning) }
            }
        }
        notify(row.others)
        if let name = event.name {
            if let listeners = row.byName[Array(name.utf8)] { notify(listeners) }
        } else {
            for listeners in row.byName.values { notify(listeners) }
        }
    }
}
