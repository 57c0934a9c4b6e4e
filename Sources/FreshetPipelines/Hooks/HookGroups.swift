/// Counts the running hooks of each group, and keeps the pipelines that wait for a permit of a group.
struct HookGroups: Sendable {
    private struct Group {
        var running = 0
        var atOnce: Int
        /// The pipelines that wait, in the order in which they came; each once.
        var waiting: ArraySlice<String> = []
        var names: Set<String> = []
    }

    private var groups: [String: Group] = [:]

    /// Whether a hook with this limit may run now.
    func permits(_ limit: HookLimit?) -> Bool {
        guard let limit, let group = groups[limit.group] else { return true }
        return group.running < limit.atOnce
    }

    /// A hook with this limit has begun to run.
    mutating func began(_ limit: HookLimit?) {
        guard let limit else { return }
        groups[limit.group, default: Group(atOnce: limit.atOnce)].running += 1
        groups[limit.group]?.atOnce = limit.atOnce
    }

    /// A hook with this limit, as it was when the hook began, has ended.
    mutating func ended(_ limit: HookLimit?) {
        guard let limit, let group = groups[limit.group] else { return }
        groups[limit.group]?.running = max(0, group.running - 1)
        if group.running <= 1, group.waiting.isEmpty { groups[limit.group] = nil }
    }

    /// A pipeline has a hook that waits for a permit of its group.
    mutating func wait(_ pipeline: String, for limit: HookLimit?) {
        guard let limit, groups[limit.group] != nil else { return }
        // A reload may have changed the number since the last hook began.
        groups[limit.group]?.atOnce = limit.atOnce
        guard groups[limit.group]?.names.insert(pipeline).inserted == true else { return }
        groups[limit.group]?.waiting.append(pipeline)
    }

    /// Removes and returns a pipeline that waits for a permit that is free now.
    mutating func popPermitted() -> String? {
        // There are few groups: one is kept while its hooks run or wait.
        for name in groups.keys.sorted() {
            guard let group = groups[name], group.running < group.atOnce,
                let pipeline = groups[name]?.waiting.popFirst()
            else { continue }
            groups[name]?.names.remove(pipeline)
            if group.running == 0, group.waiting.count <= 1 { groups[name] = nil }
            return pipeline
        }
        return nil
    }
}
