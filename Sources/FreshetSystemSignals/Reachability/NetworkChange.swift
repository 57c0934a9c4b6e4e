/// The change between two successive snapshots of one target.
///
/// | before | after | change |
/// | --- | --- | --- |
/// | unreachable | reachable | `becameReachable` |
/// | reachable | unreachable | `lost` |
/// | reachable | a remaining path has another gateway, link or source address | `pathChanged` |
/// | reachable | no earlier path is left, another family has one | `pathChanged` |
/// | reachable | one family's path appeared or disappeared, the other one is unchanged | `minor` |
/// | any | only names or obstacles differ | `minor` |
/// | any | the same | `nothing` |
enum NetworkChange: Hashable, Sendable {
    case becameReachable, pathChanged, lost, minor, nothing

    init(from old: NetworkSnapshot, to new: NetworkSnapshot) {
        guard old != new else {
            self = .nothing
            return
        }
        switch (old.isReachable, new.isReachable) {
        case (false, false): self = .minor
        case (false, true): self = .becameReachable
        case (true, false): self = .lost
        case (true, true): self = Self.reachable(from: old, to: new)
        }
    }

    private static func reachable(from old: NetworkSnapshot, to new: NetworkSnapshot) -> NetworkChange {
        var stands = false
        for family in IPAddress.Family.allCases {
            guard let before = old.states[family]?.path, let after = new.states[family]?.path else { continue }
            // Connections of this family hang from now on, whatever the other family's path is.
            guard before.isSame(as: after) else { return .pathChanged }
            stands = true
        }
        return stands ? .minor : .pathChanged
    }
}
