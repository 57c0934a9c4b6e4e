/// What two snapshots of one target, one after the other, mean.
///
/// | before | after | delta |
/// | --- | --- | --- |
/// | unreachable | reachable | `becameReachable` |
/// | reachable | unreachable | `lost` |
/// | reachable | a path that stood has another gateway, link or source address | `pathChanged` |
/// | reachable | none of the paths before is left, another family has one | `pathChanged` |
/// | reachable | a family came or went, the other's path stands | `minor` |
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
            // Connections of this family hang from now on, whatever the other one does.
            guard before.isSame(as: after) else { return .pathChanged }
            stands = true
        }
        return stands ? .minor : .pathChanged
    }
}
