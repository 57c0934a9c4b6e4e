import FreshetEventLoop

/// Who listens to which of inotify's watches: bookkeeping, without a descriptor.
struct FileWatchTable: Sendable {
    /// A path that is followed.
    typealias Follower = UInt64

    private struct Listener: Sendable {
        var follower: Follower
        var step: PathResolution.Step
    }

    private struct Row: Sendable {
        /// Those who heed one name, by it: an event costs as much as it has listeners, however many files of one
        /// directory are followed.
        var byName: [String: [Listener]] = [:]
        /// Those who heed all names or only the directory itself.
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

    /// How many watches are held, for tests.
    var count: Int { rows.count }

    /// Whether somebody listens to a watch.
    func has(_ watch: Int32) -> Bool { rows[watch] != nil }

    /// Notes what a follower listens to from now on, instead of what it listened to.
    ///
    /// - Returns: watches that nobody listens to any more.
    mutating func set(_ follower: Follower, to steps: [(watch: Int32, step: PathResolution.Step)]) -> [Int32] {
        let before = watches[follower] ?? []
        for watch in before { rows[watch]?.remove(follower) }
        for (watch, step) in steps {
            let listener = Listener(follower: follower, step: step)
            if let name = step.name {
                rows[watch, default: Row()].byName[name, default: []].append(listener)
            } else {
                rows[watch, default: Row()].others.append(listener)
            }
        }
        watches[follower] = steps.isEmpty ? nil : Set(steps.map(\.watch))
        let unused = before.filter { rows[$0]?.isEmpty == true }
        for watch in unused { rows[watch] = nil }
        return Array(unused)
    }

    /// Notes what an event means to whom.
    func hear(_ event: InotifyEvent, _ heard: inout [Follower: FileEvents]) {
        if event.events.contains(.overflowed) {
            // What has been lost nobody knows, the ends of watches included.
            for follower in watches.keys { heard[follower, default: []].formUnion([.look, .rewatch]) }
            return
        }
        guard let row = rows[event.watch] else { return }
        func tell(_ listeners: [Listener]) {
            for listener in listeners {
                let meaning = listener.step.meaning(of: event)
                if !meaning.isEmpty { heard[listener.follower, default: []].formUnion(meaning) }
            }
        }
        tell(row.others)
        if let name = event.name {
            if let listeners = row.byName[name] { tell(listeners) }
        } else {
            for listeners in row.byName.values { tell(listeners) }
        }
    }
}
