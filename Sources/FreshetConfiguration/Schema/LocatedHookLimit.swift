import FreshetPipelines

/// The limit of a hook, and its location in the file of the pipeline or hook.
struct LocatedHookLimit: Hashable, Sendable {
    /// Whose file has the limit.
    enum Owner: Hashable, Sendable {
        case pipeline(String)
        /// A hook of several pipelines.
        case hook(String)

        var text: String {
            switch self {
            case .pipeline(let name): "pipeline '\(name)'"
            case .hook(let name): "the hook '\(name)'"
            }
        }
    }

    var limit: HookLimit
    var location: Location
    var keyPath: String

    /// An error for each limit whose number differs from the first one of its group, with the owner of the limit.
    static func conflicts(
        among limits: [(owner: Owner, place: LocatedHookLimit)]
    ) -> [(owner: Owner, error: Diagnostic)] {
        var first: [String: (owner: Owner, place: LocatedHookLimit)] = [:]
        return limits.compactMap { owner, place in
            let group = place.limit.group
            guard let known = first[group] else {
                first[group] = (owner, place)
                return nil
            }
            guard known.place.limit != place.limit else { return nil }
            let error = Diagnostic(
                at: place.location, keyPath: place.keyPath,
                message: "at most \(place.limit.atOnce) hooks of the group '\(group)' run at the same time here, and "
                    + "at most \(known.place.limit.atOnce) in \(known.owner.text)",
                remedy: "write the same number in both places, or name another group", related: known.place.location)
            return (owner, error)
        }
    }
}
